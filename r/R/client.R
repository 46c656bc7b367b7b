#' Connect to a coordinator
#'
#' @param coordinator The address, `https://HOST` or `https://HOST:PORT`; by default the environment variable
#'   `CONCLAVE_COORDINATOR`.
#' @param identity Your identity folder, with `certificate.pem`, `key.pem` and `ca.pem`; by default `CONCLAVE_IDENTITY`.
#' @param x A client.
#' @param ... Ignored.
#' @return An object of class `conclave_client`. Nothing is sent before it is used.
#' @export
conclave_client <- function(coordinator = Sys.getenv("CONCLAVE_COORDINATOR"), identity = Sys.getenv("CONCLAVE_IDENTITY")) {
  if (!nzchar(coordinator)) stop_input("no coordinator is named", remedy = "give its address, or set CONCLAVE_COORDINATOR")
  if (!nzchar(identity)) stop_input("no identity folder is named", remedy = "give its path, or set CONCLAVE_IDENTITY")
  structure(list(coordinator = coordinator, identity = path.expand(identity)), class = "conclave_client")
}

#' @rdname conclave_client
#' @export
print.conclave_client <- function(x, ...) {
  cat("<conclave_client> ", x$coordinator, " as ", x$identity, "\n", sep = "")
  invisible(x)
}

connection <- function(client) {
  if (!inherits(client, "conclave_client")) stop_input("the client must come from conclave_client()")
  c("--coordinator", client$coordinator, "--identity", client$identity)
}

new_run <- function(client, id, job = NULL) structure(list(id = id, client = client, job = job), class = "conclave_run")

run_args <- function(run) {
  if (!inherits(run, "conclave_run")) stop_input("the run must come from conclave_submit() or conclave_run()")
  c(run$id, connection(run$client))
}

#' Submit jobs, and find them again
#'
#' `conclave_submit()` signs a job and sends it. `conclave_run()` names a job by its id, or by its first characters.
#' `conclave_jobs()` lists all jobs, `conclave_budget()` the remaining budget at the owners that disclose it.
#'
#' @param client A client of [conclave_client()].
#' @param job A job of [conclave_job()] or [conclave_read_job()], or the path of a job file.
#' @param anyway `TRUE` to query the owners although no usable posterior can be expected at the job's budget.
#' @param id The id of a job.
#' @param parties Names of owners to ask; by default all that the coordinator knows.
#' @param x A run.
#' @param ... Ignored.
#' @return `conclave_submit()` and `conclave_run()`: an object of class `conclave_run`, which lives at the coordinator.
#'   `conclave_jobs()` and `conclave_budget()`: a data frame.
#' @seealso [conclave_watch()]
#' @export
conclave_submit <- function(client, job, anyway = FALSE) {
  job <- as_job(job)
  sent <- with_job_file(job, function(path) call_program(c("submit", path, connection(client), if (anyway) "--anyway")))
  new_run(client, sent$job, job)
}

#' @rdname conclave_submit
#' @export
conclave_run <- function(client, id) {
  connection(client)
  new_run(client, id)
}

#' @rdname conclave_submit
#' @export
conclave_jobs <- function(client) as_rows(call_program(c("jobs", connection(client)))$jobs)

#' @rdname conclave_submit
#' @export
conclave_budget <- function(client, parties = character()) {
  as_rows(call_program(c("budget", parties, connection(client)))$parties)
}

as_rows <- function(rows) if (is.data.frame(rows)) rows else data.frame()

#' @rdname conclave_submit
#' @export
print.conclave_run <- function(x, ...) {
  cat("<conclave_run> ", x$id, " at ", x$client$coordinator, "\n", sep = "")
  invisible(x)
}

#' Follow a run, end it, and read its result
#'
#' `conclave_watch()` follows a run until it has ended. An interrupt ends the watch and not the run. `conclave_cancel()` ends the run;
#' the draws made so far are kept. `conclave_fit()` fetches result and draws, `conclave_report()` writes the result as one HTML file.
#'
#' @param run A run of [conclave_submit()] or [conclave_run()].
#' @param progress `TRUE` for a line in an interactive session, `FALSE`, or a function that is given each state: a list with
#'   `state`, `phase`, `draws`, `draws_asked`, `parties`, `rounds_per_second`, `seconds_left` and more.
#' @param path The file to write.
#' @param per Units of numeric predictors, such as `c("age=10 years")`.
#' @return `conclave_status()`: a list. `conclave_watch()` and `conclave_cancel()`: the run, invisibly. `conclave_fit()`: a [fit].
#'   `conclave_report()`: the path, invisibly.
#' @export
conclave_watch <- function(run, progress = TRUE) {
  note <- paste0("The run ", run$id, " continues. conclave_watch() follows it again, conclave_cancel() ends it.")
  call_program(c("watch", run_args(run), "--allow-inadequate"), simplify = FALSE, observe = observer(progress), note = note)
  invisible(run)
}

#' @rdname conclave_watch
#' @export
conclave_status <- function(run) {
  args <- run_args(run)
  jobs <- call_program(c("jobs", args[-1]), simplify = FALSE)$jobs
  found <- Filter(function(job) startsWith(job$job, run$id), jobs)
  if (length(found) != 1) {
    said <- if (length(found) == 0) "no job has an id that begins with " else "several jobs have an id that begins with "
    stop(error_condition(list(code = "not_found", message = paste0(said, run$id), remedy = "conclave_jobs() lists them")))
  }
  found[[1]]
}

#' @rdname conclave_watch
#' @export
conclave_cancel <- function(run) {
  call_program(c("cancel", run_args(run)))
  invisible(run)
}

#' @rdname conclave_watch
#' @export
conclave_fit <- function(run) {
  work <- tempfile("conclave-draws-")
  result <- call_program(c("summary", run_args(run), "--allow-inadequate"))
  call_program(c("draws", run_args(run), "--format", "zarr", "--out", work))
  new_fit(result, work, job = run$job, run = run)
}

#' @rdname conclave_watch
#' @export
conclave_report <- function(run, path, per = character()) {
  call_program(c("report", run_args(run), "--out", path.expand(path), if (length(per)) rbind("--per", per)))
  invisible(path)
}

#' Continue a run, or infer again from its releases
#'
#' `conclave_extend()` continues the chains of a run that has ended, as a new job that is charged as any other. `conclave_refit()`
#' infers again from what a run has released, with other priors, without predictors or without parties: nothing is charged.
#'
#' @param run A run of [conclave_submit()] or [conclave_run()].
#' @param draws Draws per chain; by default those of the job.
#' @param epsilon The budget of the extension at each owner; by default that of the job.
#' @param priors A named list or vector of densities, such as `c(default = "normal(0, 1)")`.
#' @param drop Predictors to leave out.
#' @param without Parties to leave out.
#' @param chains Number of chains.
#' @param seed Seed of the draws.
#' @return `conclave_extend()`: a run. `conclave_refit()`: a [fit].
#' @export
conclave_extend <- function(run, draws = NULL, epsilon = NULL) {
  args <- c(option("--draws", draws), option("--epsilon", epsilon))
  new_run(run$client, call_program(c("extend", run_args(run), args))$job)
}

#' @rdname conclave_extend
#' @export
conclave_refit <- function(run, priors = NULL, drop = NULL, without = NULL, draws = NULL, chains = NULL, seed = NULL) {
  work <- tempfile("conclave-refit-")
  args <- c(
    if (length(priors)) rbind("--prior", paste0(names(priors), "=", unlist(priors))), if (length(drop)) rbind("--drop", drop),
    if (length(without)) rbind("--without", without), option("--draws", draws), option("--chains", chains), option("--seed", seed)
  )
  file <- tempfile("conclave-refit-", fileext = ".toml")
  on.exit(unlink(file), add = TRUE)
  result <- call_program(c("refit", run_args(run), args, "--out", work, "--job-out", file, "--allow-inadequate"))
  new_fit(result, work, job = conclave_read_job(file), run = run)
}

option <- function(name, value) if (!is.null(value)) c(name, toml_number(value))

#' Predict at new rows
#'
#' Computes expected outcomes at new rows from the draws of a run that has ended, of a rehearsal or of a refit. No owner is asked, and
#' nothing is charged. The rows should be public or made up; they are read on this machine and sent nowhere.
#'
#' @param object A [fit], or a run.
#' @param newdata A data frame with every predictor, or the path of a `.csv` file.
#' @param outcome `TRUE` to add the interval of a single new record's outcome.
#' @param party A party of a job with parameters by party.
#' @param times Times at which survival is predicted, in the data's units.
#' @param interval The level of the intervals.
#' @param seed Seed of drawn outcomes.
#' @param ... Ignored.
#' @return A data frame with a row per row of `newdata` and quantity: `row`, `quantity`, `mean`, `sd`, `low`, `median`, `high`, and
#'   with `outcome` also `outcome_low`, `outcome_median` and `outcome_high`.
#' @export
predict.conclave_run <- function(object, newdata, outcome = FALSE, party = NULL, times = NULL, interval = 0.9, seed = NULL, ...) {
  predict_from(run_args(object), newdata, outcome, party, times, interval, seed)
}

#' @rdname predict.conclave_run
#' @export
predict.conclave_fit <- function(object, newdata, outcome = FALSE, party = NULL, times = NULL, interval = 0.9, seed = NULL, ...) {
  if (!is.null(object$run) && !"refit_of" %in% names(object$result)) {
    return(predict_from(run_args(object$run), newdata, outcome, party, times, interval, seed))
  }
  if (!dir.exists(object$store$path)) {
    stop_input("this fit is of another session, whose files are gone", remedy = "run conclave_rehearse() or conclave_refit() again")
  }
  with_job_file(object$job, function(path) {
    result <- write_text(attr(object$result, "json"), tempfile("conclave-result-", fileext = ".json"))
    on.exit(unlink(result), add = TRUE)
    from <- c("--from", object$store$path, "--job-file", path, "--result", result)
    predict_from(from, newdata, outcome, party, times, interval, seed)
  })
}

predict_from <- function(from, newdata, outcome, party, times, interval, seed) {
  work <- tempfile("conclave-predict-")
  on.exit(unlink(work, recursive = TRUE), add = TRUE)
  dir.create(work, mode = "0700")
  data <- if (is.character(newdata)) path.expand(newdata) else write_raw(newdata, names(newdata), file.path(work, "rows"))
  out <- file.path(work, "predictions.csv")
  args <- c(
    "--data", data, "--out", out, "--interval", toml_number(interval), if (outcome) "--outcome",
    if (!is.null(party)) c("--party", party), if (length(times)) c("--times", paste(toml_number(times), collapse = ",")),
    option("--seed", seed)
  )
  call_program(c("predict", from, args))
  table <- utils::read.csv(out, check.names = FALSE)
  kept <- c("row", "quantity", "mean", "sd", "low", "median", "high", if (outcome) paste0("outcome_", c("low", "median", "high")))
  table[kept]
}
