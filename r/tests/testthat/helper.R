# The examples of the repository; a test that needs them is skipped elsewhere.
examples <- function() {
  stated <- Sys.getenv("CONCLAVE_EXAMPLES")
  if (nzchar(stated)) stated else normalizePath(file.path("..", "..", "..", "examples"), mustWork = FALSE)
}

need_program <- function() {
  testthat::skip_if(inherits(try(conclave_path(), silent = TRUE), "try-error"), "the program conclave is not installed")
}

need_examples <- function() {
  need_program()
  testthat::skip_if_not(dir.exists(file.path(examples(), "data")), "the examples are not here")
}

# A party's records, read as R reads a CSV file, with texts as factors whose levels are in another order than in the job.
records <- function(party) {
  table <- utils::read.csv(file.path(examples(), "data", paste0(party, ".csv")), stringsAsFactors = FALSE)
  text <- vapply(table, is.character, logical(1))
  table[text] <- lapply(table[text], function(x) factor(x, levels = rev(sort(unique(x)))))
  table
}

# Writes tables as CSV files of 17 digits, which read back to the same bits.
csv_files <- function(tables) {
  work <- tempfile("csv-")
  dir.create(work)
  files <- file.path(work, paste0(seq_along(tables), ".csv"))
  exact <- function(x) if (is.double(x)) ifelse(is.na(x), "", sprintf("%.17g", x)) else x
  for (at in seq_along(tables)) utils::write.csv(data.frame(lapply(tables[[at]], exact)), files[at], row.names = FALSE, na = "")
  files
}

# Runs the command line on files; returns its object and its store.
by_command_line <- function(job, files, seed, ...) {
  store <- tempfile("by-command-line-")
  run <- processx::run(conclave_path(), c("rehearse", job, rbind("--data", files), "--noise-seed", seed, "--out", store, "--json", ...))
  list(result = jsonlite::fromJSON(run$stdout), store = store)
}

# The draws of a parameter and a chain as the bytes of the store's files.
stored_bytes <- function(store, group, parameter, chain) {
  nodes <- jsonlite::fromJSON(file.path(store, "zarr.json"), simplifyVector = FALSE)$consolidated_metadata$metadata
  nodes <- nodes[startsWith(names(nodes), paste0(group, "/"))]
  name <- names(Filter(function(node) identical(node$attributes$parameter, parameter), nodes))
  chunks <- file.path(store, name, "c", chain - 1)
  files <- file.path(chunks, sort(as.integer(list.files(chunks))))
  do.call(c, lapply(files, function(file) readBin(file, "raw", file.size(file))))[seq_len(8 * nodes[[name]]$shape[[2]])]
}

expect_same_bits <- function(draws, store, group, label) {
  for (chain in seq_len(dim(draws)[2])) {
    for (parameter in dimnames(draws)[[3]]) {
      bytes <- writeBin(as.vector(draws[, chain, parameter]), raw(), endian = "little")
      expect_identical(bytes, stored_bytes(store, group, parameter, chain), label = paste(label, group, parameter, chain))
    }
  }
}

logistic_job <- function(...) {
  conclave_job(
    died ~ age + ward, "logistic",
    parties = c("a", "b"), epsilon = 20, records = 500,
    columns = list(died = binary(), age = bounds(0, 100), ward = levels_of("east", "west"), unused = binary()), ...
  )
}

# Made-up records with doubles that 15 digits do not hold.
made_up <- function(rows, seed) {
  set.seed(seed)
  age <- stats::runif(rows, 0, 100)
  ward <- sample(c("east", "west"), rows, TRUE)
  died <- stats::runif(rows) < stats::plogis(-1 + 0.03 * (age - 50) + 0.5 * (ward == "west"))
  data.frame(died, age, ward = factor(ward, levels = c("west", "east")))
}

# Runs R in a process of its own, interrupts it after it has printed "begun", and returns its lines with the seconds it took to end.
interrupted <- function(code, ...) {
  script <- tempfile(fileext = ".R")
  writeLines(c(paste0("library(conclave, lib.loc = ", deparse(dirname(find.package("conclave"))), ")"), code), script)
  rscript <- file.path(R.home("bin"), "Rscript")
  child <- processx::process$new(rscript, c("--vanilla", script, ...), stdout = "|", stderr = "2>&1", env = c("current", CONCLAVE_PATH = conclave_path()))
  on.exit(child$kill())
  lines <- character()
  deadline <- Sys.time() + 60
  while (!any(grepl("begun", lines)) && child$is_alive() && Sys.time() < deadline) {
    child$poll_io(200)
    lines <- c(lines, child$read_output_lines())
  }
  began <- proc.time()[["elapsed"]]
  child$interrupt()
  child$wait(30000)
  list(lines = c(lines, child$read_all_output_lines()), seconds = proc.time()[["elapsed"]] - began, alive = child$is_alive())
}
