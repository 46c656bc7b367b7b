test_that("an interrupt ends a rehearsal and keeps what was drawn", {
  need_examples()
  skip_on_os("windows")
  job <- tempfile(fileext = ".toml")
  text <- conclave_read_job(file.path(examples(), "linear.toml"))$toml
  # More draws than the test waits for, of many records.
  write_text(sub("draws = 3000", "draws = 2000000", text), job)
  many <- lapply(c("hospital-a", "hospital-b"), function(party) records(party)[rep(seq_len(1300), 20), ])
  data <- csv_files(many)
  ended <- interrupted(c(
    "args <- commandArgs(TRUE)", "seen <- FALSE",
    "look <- function(state) if (!seen && state$draws > 0) { seen <<- TRUE; cat('begun\\n') }",
    "warned <- NULL",
    "fit <- withCallingHandlers(",
    "  conclave_rehearse(args[1], list(args[2], args[3]), seed = 1, progress = look),",
    "  warning = function(w) { if (inherits(w, 'conclave_interrupted')) warned <<- TRUE; invokeRestart('muffleWarning') }",
    ")",
    "cat('kept', dim(fit$draws)[1] > 0, 'stopped by', fit$result$stopped_by, 'warned', warned, '\\n')"
  ), job, data)
  expect_true("kept TRUE stopped by cancelled warned TRUE " %in% ended$lines, label = paste(ended$lines, collapse = "\n"))
  expect_false(ended$alive)
  message("the rehearsal ended ", format(ended$seconds, digits = 2), " s after the interrupt")
})
