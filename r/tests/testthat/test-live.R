# Against real daemons: the demo's coordinator and three parties, which stay until the test ends.
demo <- function() {
  out <- tempfile("demo-")
  args <- c("demo", "--pages", "--rows", "2000", "--algorithm", "noisy-statistics", "--out", out)
  child <- processx::process$new(conclave_path(), args, stdout = "|", stderr = "2>&1", cleanup_tree = TRUE)
  lines <- character()
  deadline <- Sys.time() + 120
  while (!any(grepl("pages stay up", lines)) && child$is_alive() && Sys.time() < deadline) {
    child$poll_io(200)
    lines <- c(lines, child$read_output_lines())
  }
  address <- regmatches(lines, regexpr("127[.]0[.]0[.]1:[0-9]+", lines))
  if (!child$is_alive() || length(address) == 0) stop(paste(lines, collapse = "\n"))
  list(child = child, out = out, address = paste0("https://", address[1]), identity = file.path(out, "alice", "identity"))
}

# The process of one of the demo's parties.
party_of <- function(running, name) {
  listed <- processx::run("ps", c("-o", "pid=,args=", "--ppid", running$child$get_pid()))$stdout
  line <- grep(paste0("__party .*", name), strsplit(listed, "\n")[[1]], value = TRUE)
  as.integer(sub("^ *([0-9]+) .*", "\\1", line))
}

test_that("jobs are sent, followed, read, refitted, continued and cancelled", {
  need_program()
  skip_on_cran()
  running <- demo()
  # The demo stops its daemons at Ctrl-C.
  on.exit({ running$child$interrupt(); running$child$wait(20000); running$child$kill_tree() })
  client <- conclave_client(running$address, running$identity)
  expect_output(print(client), "alice")

  jobs <- conclave_jobs(client)
  expect_identical(jobs$state, "finished")
  expect_identical(conclave_budget(client, "hospital-a")$party, "hospital-a")
  run <- conclave_run(client, substr(jobs$job, 1, 8))
  expect_identical(conclave_status(run)$state, "finished")

  fit <- conclave_fit(run)
  expect_identical(dim(fit$draws), c(5000L, 4L, 4L))
  expect_equal(mean(fit$draws_original[, , "age"]), summary(fit, original = TRUE)$mean[4])
  expect_output(print(fit), "dose")
  at <- data.frame(age = c(30, 60), treated = 0:1, dose = 1)
  predicted <- predict(fit, at, outcome = TRUE)
  expect_identical(predicted$row, 1:2)
  expect_true(all(predicted$low < predicted$mean & predicted$mean < predicted$high))
  eta <- fit$draws_original[, , "intercept"] + 30 * fit$draws_original[, , "age"] + fit$draws_original[, , "dose"]
  expect_equal(predicted$mean[1], mean(stats::plogis(eta)), tolerance = 1e-6)
  expect_error(predict(fit, at["age"]), "treated", class = "conclave_invalid_input")

  page <- tempfile(fileext = ".html")
  expect_identical(conclave_report(run, page, per = "age=10"), page)
  expect_gt(file.size(page), 10000)
  error <- tryCatch(conclave_report(run, page), conclave_error = identity)
  expect_identical(error$remedy, "choose another path")

  expect_equal(predict(run, at, outcome = TRUE), predicted)

  refit <- conclave_refit(run, priors = c(default = "normal(0, 1)"), draws = 500, chains = 2, seed = 3)
  expect_identical(dim(refit$draws), c(500L, 2L, 4L))
  expect_match(refit$job$toml, "normal(0, 1)", fixed = TRUE)
  eta <- refit$draws_original[, , "intercept"] + 30 * refit$draws_original[, , "age"] + refit$draws_original[, , "dose"]
  expect_equal(predict(refit, at)$mean[1], mean(stats::plogis(eta)), tolerance = 1e-6)

  # A chain that is followed, cut short by its draws, and continued.
  job <- conclave_read_job(file.path(running$out, "job.toml"))
  text <- sub("draws = 5000", "draws = 3\nwarmup = 0\nforce = true", sub("noisy-statistics", "penalty", job$toml))
  states <- character()
  chain <- client |>
    conclave_submit(describe(sub("epsilon = 3.0", "epsilon = 2.0", text))) |>
    conclave_watch(progress = function(state) states <<- c(states, state$state))
  expect_true("finished" %in% states)
  expect_identical(dim(conclave_fit(chain)$draws)[1], 3L)
  expect_error(suppressWarnings(conclave_watch(conclave_extend(chain, epsilon = 1000))), class = "conclave_error")
  longer <- conclave_extend(chain, draws = 200000, epsilon = 2)
  expect_identical(conclave_cancel(longer), longer)
  expect_true(conclave_status(longer)$state %in% c("cancelled", "finished"))

  # Refusals have the class of their code.
  expect_error(conclave_fit(conclave_run(client, "zzz")), class = "conclave_not_found")
  expect_error(conclave_status(conclave_run(client, "zzz")), class = "conclave_not_found")
  expensive <- describe(sub("epsilon = 3.0", "epsilon = 900.0", job$toml))
  refused <- tryCatch(suppressWarnings(conclave_watch(conclave_submit(client, expensive))), conclave_error = identity)
  expect_true(refused$code %in% c("policy", "budget"))
  running$child$interrupt()
  running$child$wait(20000)
  expect_error(conclave_jobs(client), class = "conclave_unreachable")
})

test_that("an interrupt ends the watch and not the run", {
  need_program()
  skip_on_cran()
  skip_on_os(c("windows", "mac"))
  running <- demo()
  on.exit({ running$child$interrupt(); running$child$wait(20000); running$child$kill_tree() })
  client <- conclave_client(running$address, running$identity)
  # A party that stands still: the run waits for it.
  party <- party_of(running, "hospital-c")
  tools::pskill(party, 19)
  on.exit(tools::pskill(party, 18), add = TRUE, after = FALSE)
  text <- sub("epsilon = 3.0", "epsilon = 1.0", conclave_read_job(file.path(running$out, "job.toml"))$toml)
  run <- conclave_submit(client, describe(text))
  ended <- interrupted(c(
    "args <- commandArgs(TRUE)", "run <- conclave_run(conclave_client(args[1], args[2]), args[3])", "seen <- FALSE",
    "look <- function(state) if (!seen) { seen <<- TRUE; cat('begun\\n') }",
    "tryCatch(conclave_watch(run, progress = look), interrupt = function(i) cat('interrupted\\n'))"
  ), running$address, running$identity, run$id)
  expect_true("interrupted" %in% ended$lines, label = paste(ended$lines, collapse = "\n"))
  expect_true(any(grepl("continues. conclave_watch", ended$lines, fixed = TRUE)), label = paste(ended$lines, collapse = "\n"))
  expect_lt(ended$seconds, 60)
  message("the watch ended ", format(ended$seconds, digits = 2), " s after the interrupt")
  state <- conclave_status(run)$state
  expect_false(state %in% c("failed", "cancelled", "finished"), label = state)
})
