test_that("every stable code of the program has one condition", {
  need_program()
  listed <- call_program("errors")$errors$code
  expect_setequal(error_codes, listed)
  expect_false(anyDuplicated(error_codes) > 0)
  for (code in listed) {
    condition <- error_condition(list(code = code, message = "x", party = "a", remedy = "do y"))
    expect_identical(class(condition), c(paste0("conclave_", code), "conclave_error", "error", "condition"))
    expect_identical(conditionMessage(condition), "a: x: do y")
  }
})

test_that("an error of the program is its condition, with its remedy", {
  need_program()
  file <- tempfile(fileext = ".toml")
  writeLines("nmae = 1", file)
  expect_error(conclave_read_job(file), "nmae", class = "conclave_invalid_input")
  error <- tryCatch(logistic_job(priors = c(agee = "normal(0, 1)")), conclave_error = identity)
  expect_s3_class(error, "conclave_invalid_input")
  expect_match(conditionMessage(error), "agee")
  client <- conclave_client("https://127.0.0.1:1", tempfile())
  expect_error(conclave_jobs(client), class = "conclave_invalid_input")
})

test_that("the program is found by option, variable and path", {
  withr_option <- options(conclave.path = tempfile())
  on.exit(options(withr_option))
  expect_error(conclave_path(), "is no program", class = "conclave_not_found")
  options(conclave.path = NULL)
  before <- Sys.getenv("CONCLAVE_PATH", NA)
  on.exit(if (is.na(before)) Sys.unsetenv("CONCLAVE_PATH") else Sys.setenv(CONCLAVE_PATH = before), add = TRUE)
  Sys.setenv(CONCLAVE_PATH = tempdir())
  expect_error(conclave_path(), class = "conclave_not_found")
})

test_that("the program is checked", {
  need_program()
  expect_message(check <- conclave_install_check(), "^conclave [0-9]")
  expect_true(file.exists(check$path))
})
