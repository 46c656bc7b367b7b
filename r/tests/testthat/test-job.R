test_that("a job has what the formula needs, and its numbers keep their bits", {
  need_program()
  job <- logistic_job(priors = c(default = "normal(0, 1)"), sampler = list(chains = 2, draws = 100))
  expect_s3_class(job, "conclave_job")
  expect_identical(job$parties, c("a", "b"))
  expect_setequal(names(job$columns), c("died", "age", "ward"))
  expect_identical(job$parameters, c("intercept", "age", "ward[west]"))
  expect_match(job$toml, "chains = 2", fixed = TRUE)
  expect_match(job$signed, "algorithm = \"auto\"", fixed = TRUE)
  expect_output(print(job), "epsilon 20")
  for (x in c(0.1 + 0.2, 1 / 3, 1e-300, 5e-324, 123456789)) expect_identical(as.numeric(toml_number(x)), x)
  expect_identical(toml_value(list(a = c("x\"y", "z"), `b c` = TRUE)), "{ a = [\"x\\\"y\", \"z\"], \"b c\" = true }")
})

test_that("a formula is read as R's", {
  need_program()
  job <- conclave_job(
    died ~ ns(age, knots = c(40, 60)) * ward + I(age^2) + (1 | party), "binomial",
    parties = c("a", "b"), epsilon = 3, incomplete_rows = TRUE, records = c(a = 10, b = 20),
    columns = list(died = binary(), age = bounds(20, 80), ward = levels_of("east", "west"))
  )
  expect_true(job$incomplete_rows)
  expect_true(all(c("ns(age)[1]", "ns(age)[1]:ward[west]", "I(age^2)", "intercept[a]") %in% job$parameters))
  expect_error(conclave_job(died ~ agee, "logistic", "a", list(died = binary(), age = bounds(0, 1)), 3), "nearest is `age`")
  expect_error(conclave_job(died ~ age, "logistic", "a", list(died = 1), 3), class = "conclave_invalid_input")
})

test_that("columns are declared and never read off data", {
  expect_error(bounds(1, 1), class = "conclave_invalid_input")
  expect_error(levels_of("a"), class = "conclave_invalid_input")
  schema <- tempfile(fileext = ".json")
  writeLines(c(
    "{\"fields\": [{\"name\": \"age\", \"type\": \"integer\", \"constraints\": {\"minimum\": 0, \"maximum\": 120}},",
    "{\"name\": \"sex\", \"type\": \"string\", \"constraints\": {\"enum\": [\"f\", \"m\"]}},",
    "{\"name\": \"dead\", \"type\": \"boolean\"}, {\"name\": \"note\", \"type\": \"string\"}]}"
  ), schema)
  expect_warning(read <- codebook(schema), "note", class = "conclave_warning")
  expect_identical(read, list(age = bounds(0, 120), sex = levels_of("f", "m"), dead = binary()))
  web <- tempfile(fileext = ".json")
  writeLines("{\"tableSchema\": {\"columns\": [{\"name\": \"bmi\", \"datatype\": {\"base\": \"double\", \"minimum\": 10, \"maximum\": 80}}]}}", web)
  expect_identical(codebook(web), list(bmi = bounds(10, 80)))
  redcap <- tempfile(fileext = ".csv")
  writeLines(c(
    "\"Variable / Field Name\",\"Field Type\",\"Choices, Calculations, OR Slider Labels\",\"Text Validation Min\",\"Text Validation Max\"",
    "age,text,,18,99", "ward,radio,\"1, East | 2, West\",,", "dead,yesno,,,"
  ), redcap)
  expect_identical(codebook(redcap), list(age = bounds(18, 99), ward = levels_of("1", "2"), dead = binary()))
})

test_that("a plan and an account are the program's", {
  need_program()
  plan <- conclave_plan(logistic_job())
  expect_true(is.data.frame(plan$algorithms))
  expect_output(print(plan), "noisy-statistics")
  spent <- conclave_account(mu = c(0.01, 0.05), count = c(4195, 100), delta = 1e-6)
  expect_equal(spent$mu, sqrt(0.01^2 * 4195 + 0.05^2 * 100))
  expect_output(print(conclave_account(epsilon = 3)), "mu")
  expect_error(conclave_account(), class = "conclave_invalid_input")
})
