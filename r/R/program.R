#' Find the program
#'
#' `conclave_path()` returns the path of the program `conclave`: that of `options(conclave.path = )`, else of the environment
#' variable `CONCLAVE_PATH`, else the one on the search path. `conclave_install_check()` runs it.
#'
#' @return `conclave_path()`: a path. `conclave_install_check()`: invisibly, a list of `path` and `version`.
#' @examples
#' \dontrun{
#' options(conclave.path = "/opt/conclave/bin/conclave")
#' conclave_install_check()
#' }
#' @export
conclave_path <- function() {
  stated <- getOption("conclave.path", Sys.getenv("CONCLAVE_PATH"))
  path <- if (nzchar(stated)) path.expand(stated) else unname(Sys.which("conclave"))
  if (!nzchar(path) || file.access(path, 1) != 0 || dir.exists(path)) {
    found <- if (nzchar(path)) paste0(path, " is no program") else "the program conclave is not on the search path"
    stop(error_condition(list(
      code = "not_found", message = found,
      remedy = "install it, or name it by options(conclave.path = \"...\") or the environment variable CONCLAVE_PATH"
    )))
  }
  path
}

#' @rdname conclave_path
#' @export
conclave_install_check <- function() {
  path <- conclave_path()
  run <- processx::run(path, "--version", error_on_status = FALSE)
  version <- sub("^conclave ", "", trimws(run$stdout))
  if (run$status != 0 || !grepl("^[0-9]+[.][0-9]+", version)) {
    stop(error_condition(list(code = "internal", message = paste0(path, " --version failed: ", trimws(run$stderr)))))
  }
  # Commands that this package needs.
  call_program("errors")
  message("conclave ", version, " at ", path)
  invisible(list(path = path, version = version))
}

# Interval between looks at the program, in milliseconds. R handles an interrupt between two of them.
LOOK_EVERY <- 100

# Runs a command with --json and returns the parsed object; `simplify` turns arrays of objects into data frames.
#
# `observe` is given each state of a command that takes `--progress json`. `interrupted` says what an interrupt does: "kill" ends
# the command, "stop" asks it for what it has so far, as Ctrl-C does on a terminal.
call_program <- function(args, simplify = TRUE, observe = NULL, interrupted = "kill", note = NULL) {
  args <- c(args, "--json", if (!is.null(observe)) c("--progress", "json"))
  run <- run_program(args, observe, interrupted, note)
  if (!is.null(run$error)) stop(error_condition(run$error))
  for (text in run$warnings) warn(text)
  if (run$stopped) warn("interrupted: the result has what was drawn so far", c("conclave_interrupted", "conclave_warning"))
  if (!nzchar(run$text)) {
    if (run$status == 0) return(NULL)
    text <- trimws(paste(run$lines, collapse = "\n"))
    if (!nzchar(text)) text <- paste0("the command ended with exit code ", run$status)
    stop(error_condition(list(code = "internal", message = text)))
  }
  parsed <- jsonlite::fromJSON(run$text, simplifyVector = simplify, simplifyMatrix = FALSE)
  attr(parsed, "json") <- run$text
  attr(parsed, "status") <- run$status
  parsed
}

# Runs the program to its end. Returns its output, its exit code, the error it printed, and its other lines.
run_program <- function(args, observe = NULL, interrupted = "kill", note = NULL) {
  output <- tempfile("conclave-", fileext = ".json")
  on.exit(unlink(output), add = TRUE)
  child <- processx::process$new(conclave_path(), args, stdout = output, stderr = "|", encoding = "UTF-8", cleanup = TRUE)
  on.exit(if (child$is_alive()) child$kill(), add = TRUE)
  found <- list(error = NULL, warnings = character(), lines = character(), stopped = FALSE)
  take <- function(lines) {
    for (line in lines) found <<- take_line(found, line, observe)
  }
  watch <- function() {
    while (child$is_alive()) {
      child$poll_io(LOOK_EVERY)
      take(child$read_error_lines())
    }
    take(child$read_all_error_lines())
  }
  if (interrupted == "stop") {
    tryCatch(watch(), interrupt = function(condition) {
      found$stopped <<- TRUE
      child$interrupt()
      watch()
    })
  } else {
    withCallingHandlers(watch(), interrupt = function(condition) {
      child$kill()
      if (!is.null(note)) message(note)
    })
  }
  found$status <- child$get_exit_status()
  found$text <- read_text(output)
  found
}

# Sorts one line of the program's standard error.
take_line <- function(found, line, observe) {
  event <- if (startsWith(line, "{")) tryCatch(jsonlite::fromJSON(line, simplifyVector = TRUE), error = function(e) NULL)
  if (!is.null(event$error)) {
    found$error <- event$error
  } else if (!is.null(event$progress)) {
    if (!is.null(observe)) observe(event$progress)
  } else if (!is.null(event$message)) {
    message(event$message)
  } else if (startsWith(line, "warning: ")) {
    found$warnings <- c(found$warnings, sub("^warning: ", "", line))
  } else if (is.null(event)) {
    found$lines <- c(found$lines, line)
  }
  found
}

read_text <- function(path) {
  size <- file.size(path)
  if (is.na(size) || size == 0) return("")
  text <- readChar(path, size, useBytes = TRUE)
  Encoding(text) <- "UTF-8"
  text
}

# Writes a text byte for byte.
write_text <- function(text, path) {
  writeBin(charToRaw(enc2utf8(text)), path)
  path
}

# Returns the observer of a `progress` argument: TRUE, FALSE or a function.
observer <- function(progress) {
  if (is.function(progress)) return(progress)
  if (!isTRUE(progress) || !interactive()) return(function(state) NULL)
  function(state) {
    draws <- paste0(state$draws, " of ", state$draws_asked, " draws per chain")
    words <- c(if (!is.null(state$state)) state$state, state$phase, draws)
    left <- state$seconds_left
    if (!is.null(left)) words <- c(words, paste0("about ", format(round(left)), " s left"))
    cat("\r", formatC(paste(words, collapse = ", "), width = -78), sep = "", file = stderr())
  }
}
