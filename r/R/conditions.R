# The stable error codes of the program. A test compares them with `conclave errors`.
error_codes <- c(
  "invalid_input", "not_found", "policy", "revoked", "budget", "unauthenticated", "unreachable", "conflict", "internal"
)

# Builds the condition of an error object: code, party, message, remedy.
error_condition <- function(error, call = NULL) {
  code <- if (is.null(error$code)) "internal" else error$code
  text <- error$message
  if (!is.null(error$party) && !grepl(error$party, text, fixed = TRUE)) text <- paste0(error$party, ": ", text)
  if (!is.null(error$remedy)) text <- paste0(text, ": ", error$remedy)
  structure(
    class = c(paste0("conclave_", code), "conclave_error", "error", "condition"),
    list(message = text, call = call, code = code, party = error$party, remedy = error$remedy)
  )
}

stop_input <- function(..., remedy = NULL) {
  stop(error_condition(list(code = "invalid_input", message = paste0(...), remedy = remedy)))
}

# Signals a warning of the program.
warn <- function(text, class = "conclave_warning") {
  warning(structure(class = c(class, "warning", "condition"), list(message = text, call = NULL)))
}
