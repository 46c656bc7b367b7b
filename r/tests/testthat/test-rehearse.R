# A job for each family of the examples, with its parties.
jobs <- function() {
  files <- sort(list.files(examples(), pattern = "[.]toml$", full.names = TRUE))
  stats::setNames(files, sub("[.]toml$", "", basename(files)))
}

# A job of the examples with fewer draws, for a short test.
shorter <- function(path) describe(sub("(?m)^draws = [0-9_]+", "draws = 300", conclave_read_job(path)$toml, perl = TRUE))

test_that("the draws from data frames are those of the command line, bit for bit, for every example", {
  need_examples()
  expect_gt(length(jobs()), 12)
  for (name in names(jobs())) {
    job <- shorter(jobs()[[name]])
    tables <- lapply(stats::setNames(job$parties, job$parties), records)
    fit <- suppressWarnings(conclave_rehearse(job, rev(tables), seed = 7, progress = FALSE))
    other <- by_command_line(write_text(job$toml, tempfile(fileext = ".toml")), file.path(examples(), "data", paste0(job$parties, ".csv")), 7)
    expect_identical(dimnames(fit$draws)[[3]], job$parameters, label = name)
    expect_same_bits(fit$draws, other$store, "posterior", name)
    expect_same_bits(fit$draws_original, other$store, "posterior_original", name)
    rows <- if (is_adequate(fit)) other$result$posterior else other$result$inadequate$posterior
    expect_identical(summary(fit)$mean, rows$mean, label = name)
  }
})

test_that("nulls and factors give the draws of empty cells and texts", {
  need_program()
  job <- logistic_job(incomplete_rows = TRUE)
  tables <- list(a = made_up(500, 1), b = made_up(400, 2))
  tables$a$age[c(3, 77)] <- NA
  tables$b$ward[5] <- NA
  tables$b$died[c(1, 400)] <- NA
  tables$b$ward <- as.character(tables$b$ward)
  fit <- suppressWarnings(conclave_rehearse(job, tables, seed = 11, drop_bad_rows = TRUE, anyway = TRUE))
  file <- tempfile(fileext = ".toml")
  write_text(job$toml, file)
  as_cells <- function(table) transform(table, died = as.integer(died))
  other <- by_command_line(file, csv_files(lapply(tables, as_cells)), 11, "--drop-bad-rows", "--anyway")
  expect_same_bits(fit$draws, other$store, "posterior", "nulls")
  expect_same_bits(fit$draws_original, other$store, "posterior_original", "nulls")
  expect_error(conclave_rehearse(job, tables, anyway = TRUE), "row 3, column \"age\": the value is missing", class = "conclave_invalid_input")
  found <- suppressWarnings(conclave_check(job, tables$b, drop_bad_rows = TRUE))
  expect_identical(c(attr(found, "rows"), attr(found, "unusable")), c(400L, 3L))
})

test_that("tables that do not fit are refused by name", {
  need_program()
  job <- logistic_job()
  table <- made_up(50, 1)
  expect_error(conclave_rehearse(job, list(a = table, c = table)), "c, b", class = "conclave_invalid_input")
  expect_error(conclave_rehearse(job, list(table)), "1 --data", class = "conclave_invalid_input")
  expect_error(conclave_rehearse(job, list(table, table["age"])), "has no column", class = "conclave_invalid_input")
  dated <- transform(table, age = as.Date("2020-01-01") + seq_along(age))
  expect_error(conclave_rehearse(job, list(table, dated)), "holds dates", class = "conclave_invalid_input")
  listed <- table
  listed$age <- as.list(table$age)
  expect_error(conclave_rehearse(job, list(table, listed)), "neither a number nor a text", class = "conclave_invalid_input")
})

test_that("posterior and bayesplot read a fit", {
  need_program()
  skip_if_not_installed("posterior")
  fit <- suppressWarnings(conclave_rehearse(logistic_job(), list(made_up(500, 1), made_up(500, 2)), seed = 3, anyway = TRUE))
  draws <- posterior::as_draws_array(fit)
  expect_identical(posterior::variables(draws), fit$job$parameters)
  expect_identical(dim(draws), dim(fit$draws))
  expect_identical(as.vector(draws), as.vector(fit$draws))
  expect_identical(posterior::nchains(posterior::as_draws_df(fit, original = TRUE)), dim(fit$draws)[2])
  expect_s3_class(posterior::as_draws_rvars(fit), "draws_rvars")
  summary <- posterior::summarise_draws(posterior::as_draws(fit), "mean", "sd")
  expect_equal(as.numeric(summary$mean), summary(fit)$mean)
  skip_if_not_installed("bayesplot")
  expect_s3_class(bayesplot::mcmc_intervals(posterior::as_draws_array(fit)), "ggplot")
  expect_s3_class(bayesplot::mcmc_trace(posterior::as_draws_array(fit)), "ggplot")
  expect_output(print(fit), "ward\\[west\\]")
})

test_that("predictions from a rehearsal are those of its draws", {
  need_program()
  fit <- suppressWarnings(conclave_rehearse(logistic_job(), list(made_up(500, 1), made_up(500, 2)), seed = 3, anyway = TRUE))
  at <- data.frame(age = c(30, 60), ward = c("east", "west"))
  predicted <- predict(fit, at, interval = 0.5)
  of <- function(name) fit$draws_original[, , name]
  eta <- list(of("intercept") + 30 * of("age"), of("intercept") + 60 * of("age") + of("ward[west]"))
  expect_equal(predicted$mean, vapply(eta, function(x) mean(stats::plogis(x)), 0), tolerance = 1e-6)
  expect_equal(predicted$low, vapply(eta, function(x) unname(stats::quantile(stats::plogis(x), 0.25)), 0), tolerance = 1e-3)
  file <- tempfile(fileext = ".rds")
  saveRDS(fit, file)
  unlink(fit$store$path, recursive = TRUE)
  expect_error(predict(readRDS(file), at), "another session", class = "conclave_invalid_input")
})

test_that("progress is given to a function, and its error ends the run", {
  need_examples()
  job <- conclave_read_job(jobs()[["linear"]])
  tables <- lapply(job$parties, records)
  states <- list()
  suppressWarnings(conclave_rehearse(job, tables, seed = 1, progress = function(state) states[[length(states) + 1]] <<- state))
  expect_gt(length(states), 0)
  expect_true(all(c("phase", "rounds", "draws", "draws_asked") %in% names(states[[1]])))
  expect_error(suppressWarnings(conclave_rehearse(job, tables, progress = function(state) stop("enough"))), "enough")
})
