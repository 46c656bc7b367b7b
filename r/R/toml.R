# Writing of TOML: only what a job's tables hold.

toml_string <- function(text) {
  text <- enc2utf8(text)
  text <- gsub("\\", "\\\\", text, fixed = TRUE)
  text <- gsub("\"", "\\\"", text, fixed = TRUE)
  text <- gsub("\n", "\\n", text, fixed = TRUE)
  text <- gsub("\t", "\\t", text, fixed = TRUE)
  paste0("\"", text, "\"")
}

# The shortest text of a number that reads back to the same bits.
toml_number <- function(x) {
  if (!all(is.finite(x))) stop_input("a number of a job is ", x[!is.finite(x)][1], ": it must be finite")
  one <- function(x) {
    for (digits in c(15, 16, 17)) {
      text <- formatC(x, digits = digits, format = "g", width = 1)
      if (as.numeric(text) == x) break
    }
    text
  }
  vapply(x, one, character(1))
}

toml_key <- function(name) {
  ifelse(grepl("^[A-Za-z0-9_-]+$", name), name, toml_string(name))
}

toml_value <- function(x) {
  if (is.list(x)) {
    entries <- paste(toml_key(names(x)), "=", vapply(x, toml_value, character(1)), collapse = ", ")
    return(paste0("{ ", entries, " }"))
  }
  text <- if (is.logical(x)) tolower(as.character(x)) else if (is.numeric(x)) toml_number(x) else toml_string(as.character(x))
  if (length(x) == 1 && !inherits(x, "AsIs")) text else paste0("[", paste(text, collapse = ", "), "]")
}

toml_lines <- function(table) {
  paste0(toml_key(names(table)), " = ", vapply(table, toml_value, character(1)), "\n", collapse = "")
}
