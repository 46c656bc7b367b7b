#' Forecast what a job will achieve
#'
#' Compares the algorithms that can fit the job and details the job's own, from bounds, priors and numbers of records alone. No
#' owner is asked.
#'
#' @param job A job of [conclave_job()] or [conclave_read_job()], or the path of a job file.
#' @param rehearsal A fit of [conclave_rehearse()], whose posterior is used as a guess.
#' @param x A plan.
#' @param ... Ignored.
#' @return An object of class `conclave_plan`: the program's object. `algorithms` is a data frame with a row per algorithm.
#'   Printing shows the program's text.
#' @export
conclave_plan <- function(job, rehearsal = NULL) {
  job <- as_job(job)
  args <- NULL
  if (!is.null(rehearsal)) {
    if (!inherits(rehearsal, "conclave_fit")) stop_input("`rehearsal` must come from conclave_rehearse()")
    guess <- tempfile("conclave-rehearsal-", fileext = ".json")
    on.exit(unlink(guess), add = TRUE)
    args <- c("--rehearsal", write_text(attr(rehearsal$result, "json"), guess))
  }
  with_job_file(job, function(path) {
    plan <- call_program(c("plan", path, args))
    text <- run_program(c("plan", path, args))$text
    structure(plan, text = text, class = "conclave_plan")
  })
}

#' @rdname conclave_plan
#' @export
print.conclave_plan <- function(x, ...) {
  cat(attr(x, "text"))
  invisible(x)
}

#' Account for privacy
#'
#' With `mu`, computes what releases cost together; with `epsilon`, the mu that a budget buys.
#'
#' @param mu The cost of a release, its sensitivity over its noise; one number for each kind of release.
#' @param count The number of releases of each kind.
#' @param epsilon The epsilon of a budget.
#' @param delta The delta of the budget.
#' @param x An account.
#' @param ... Ignored.
#' @return An object of class `conclave_account`: the program's object.
#' @examples
#' \dontrun{
#' conclave_account(mu = c(0.01, 0.05), count = c(4195, 100), delta = 1e-6)
#' conclave_account(epsilon = 3, delta = 1e-6)
#' }
#' @export
conclave_account <- function(mu = NULL, count = 1, epsilon = NULL, delta = 1e-6) {
  if (is.null(mu) == is.null(epsilon)) stop_input("give either `mu` and `count`, or `epsilon`")
  what <- if (is.null(mu)) c("--epsilon", toml_number(epsilon)) else {
    c(rbind("--queries", paste0(toml_number(mu), "x", format(count, scientific = FALSE, trim = TRUE))))
  }
  structure(call_program(c("account", what, "--delta", toml_number(delta))), class = "conclave_account")
}

#' @rdname conclave_account
#' @export
print.conclave_account <- function(x, ...) {
  values <- unlist(unclass(x)[vapply(unclass(x), is.atomic, logical(1))])
  cat(paste0(formatC(names(values), width = -24), values, "\n"), sep = "")
  invisible(x)
}

#' Run a job on your own tables
#'
#' The sampler, the models, the noise and the accounting are those of a real run. Only the owners' ledgers are missing: no budget is
#' spent, and nothing is private. Use your own or simulated records.
#'
#' An interrupt (Escape, or Ctrl-C) ends the run; the fit then has the draws made so far, and a warning of class
#' `conclave_interrupted` says so.
#'
#' @param job A job of [conclave_job()] or [conclave_read_job()], or the path of a job file.
#' @param tables A list of data frames, in the job's order or by the names of the parties. The path of a `.csv` or `.parquet` file
#'   may stand for a table. Numbers, logicals, factors and texts are taken; dates are refused.
#' @param seed Seed of the noise, for a repeatable run.
#' @param drop_bad_rows `TRUE` to let rows with a missing value count and contribute zero; the job must set `incomplete_rows`.
#' @param anyway `TRUE` to run a job although no usable posterior can be expected at its budget.
#' @param progress `TRUE` for a line in an interactive session, `FALSE`, or a function that is given each state: a list of `phase`,
#'   `rounds`, `draws` and `draws_asked`.
#' @return A [fit].
#' @export
conclave_rehearse <- function(job, tables, seed = NULL, drop_bad_rows = FALSE, anyway = FALSE, progress = TRUE) {
  job <- as_job(job)
  work <- tempfile("conclave-rehearsal-")
  on.exit(unlink(work, recursive = TRUE), add = TRUE)
  paths <- table_paths(job, tables, work)
  store <- tempfile("conclave-draws-")
  args <- c(
    rbind("--data", paths), "--out", store, if (!is.null(seed)) c("--noise-seed", format(seed, scientific = FALSE)),
    if (drop_bad_rows) "--drop-bad-rows", if (anyway) "--anyway"
  )
  result <- with_job_file(job, function(path) {
    call_program(c("rehearse", path, args), observe = observer(progress), interrupted = "stop")
  })
  new_fit(result, store, job = job)
}

#' Check records for mistakes
#'
#' Looks for values outside the declared bounds, unknown levels, codes that stand for "unknown", and designs that no model can
#' separate. The findings depend on the records and have no noise: they are for their owner alone.
#'
#' @param job A job of [conclave_job()] or [conclave_read_job()], or the path of a job file.
#' @param table A data frame, or the path of a `.csv` or `.parquet` file.
#' @param drop_bad_rows `TRUE` to let rows with a missing value count and contribute zero.
#' @return A data frame with a row per finding: `grave` (a job can't use the records as they are), `found`, `remedy`. Its attributes
#'   `rows` and `unusable` are the number of rows and of those with a missing value.
#' @export
conclave_check <- function(job, table, drop_bad_rows = FALSE) {
  job <- as_job(job)
  work <- tempfile("conclave-check-")
  on.exit(unlink(work, recursive = TRUE), add = TRUE)
  dir.create(work, mode = "0700")
  data <- table_path(job, table, file.path(work, "table"))
  checked <- with_job_file(job, function(path) {
    call_program(c("check", path, "--data", data, if (drop_bad_rows) "--drop-bad-rows"), simplify = FALSE)
  })
  records <- checked$records[[1]]
  text <- function(key) vapply(records$concerns, function(concern) concern[[key]], character(1))
  grave <- vapply(records$concerns, function(concern) concern$grave, logical(1))
  found <- data.frame(grave = grave, found = text("found"), remedy = text("remedy"))
  structure(found, rows = records$rows, unusable = records$unusable)
}
