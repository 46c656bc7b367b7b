#' Declare the public bounds of a column
#'
#' Bounds and levels are public knowledge and part of the job: a value outside is clamped. They are never read off data, since
#' bounds that are taken from records reveal the records.
#'
#' @param low,high The smallest and the largest value that the column can have.
#' @param ... The levels, the reference first: texts.
#' @return A declaration for the argument `columns` of [conclave_job()].
#' @examples
#' columns <- list(died = binary(), age = bounds(0, 100), ward = levels_of("east", "west"))
#' @seealso [codebook()] reads declarations from a public document.
#' @export
bounds <- function(low, high) {
  if (!is.numeric(low) || !is.numeric(high) || length(low) != 1 || length(high) != 1 || !isTRUE(low < high)) {
    stop_input("bounds() takes two numbers, the lower first")
  }
  declaration(list(min = as.numeric(low), max = as.numeric(high)))
}

#' @rdname bounds
#' @export
binary <- function() declaration(list(binary = TRUE))

#' @rdname bounds
#' @export
levels_of <- function(...) {
  levels <- as.character(c(...))
  if (length(levels) < 2 || anyDuplicated(levels)) stop_input("levels_of() takes two or more different levels")
  declaration(list(levels = levels))
}

declaration <- function(entries) structure(entries, class = "conclave_column")

#' @export
print.conclave_column <- function(x, ...) {
  cat(toml_value(unclass(x)), "\n", sep = "")
  invisible(x)
}

#' Read columns from a codebook
#'
#' Reads the declarations of columns from a public document: a Frictionless Table Schema (`.json`, its `constraints`), a data
#' dictionary of REDCap (`.csv`), or CSV on the Web (`.json`, its `datatype`). No data are read. A field without bounds or levels
#' is left out, with a warning: declare it with [bounds()].
#'
#' @param path The document.
#' @return A named list of declarations, for the argument `columns` of [conclave_job()].
#' @export
codebook <- function(path) {
  fields <- if (grepl("[.]csv$", path, ignore.case = TRUE)) redcap_fields(path) else json_fields(path)
  known <- !vapply(fields, is.null, logical(1))
  if (any(!known)) {
    names <- paste(names(fields)[!known], collapse = ", ")
    warn(paste0(path, " states no bounds or levels of ", names, ": declare them with bounds(), binary() or levels_of()"))
  }
  fields[known]
}

json_fields <- function(path) {
  object <- jsonlite::fromJSON(path, simplifyVector = FALSE)
  csvw <- object$tableSchema$columns
  if (is.null(csvw)) csvw <- if (is.null(object$fields)) object$columns
  fields <- if (is.null(csvw)) object$fields else csvw
  if (is.null(fields)) stop_input(path, " has no `fields` (Table Schema) and no `columns` (CSV on the Web)")
  read <- if (is.null(csvw)) table_schema_field else csvw_field
  stats::setNames(lapply(fields, read), vapply(fields, function(field) field$name, character(1)))
}

table_schema_field <- function(field) {
  limits <- field$constraints
  if (identical(field$type, "boolean")) return(binary())
  if (!is.null(limits$enum)) return(enumerated(unlist(limits$enum)))
  ranged(limits$minimum, limits$maximum)
}

csvw_field <- function(field) {
  type <- field$datatype
  if (identical(type, "boolean") || identical(type$base, "boolean")) return(binary())
  if (!is.list(type)) return(NULL)
  low <- if (is.null(type$minimum)) type$minInclusive else type$minimum
  ranged(low, if (is.null(type$maximum)) type$maxInclusive else type$maximum)
}

redcap_fields <- function(path) {
  table <- utils::read.csv(path, colClasses = "character", check.names = FALSE)
  column <- function(pattern) {
    at <- grep(pattern, names(table), ignore.case = TRUE)
    if (length(at) == 0) stop_input(path, " has no column like \"", pattern, "\": export the data dictionary of REDCap")
    table[[at[1]]]
  }
  type <- column("^field.?type$")
  choices <- column("^(choices|select_choices)")
  low <- column("validation.?min$")
  high <- column("validation.?max$")
  one <- function(at) {
    if (type[at] %in% c("yesno", "truefalse")) return(binary())
    if (type[at] %in% c("radio", "dropdown")) {
      codes <- trimws(sub(",.*$", "", strsplit(choices[at], "|", fixed = TRUE)[[1]]))
      return(enumerated(codes))
    }
    ranged(if (nzchar(low[at])) low[at], if (nzchar(high[at])) high[at])
  }
  shown <- which(!type %in% c("descriptive", "file", "calc", "checkbox"))
  stats::setNames(lapply(shown, one), column("^(variable|field_name)")[shown])
}

enumerated <- function(values) {
  values <- as.character(values)
  if (setequal(values, c("0", "1"))) binary() else if (length(values) > 1) levels_of(values)
}

ranged <- function(low, high) {
  if (is.null(low) || is.null(high)) return(NULL)
  low <- suppressWarnings(as.numeric(low))
  high <- suppressWarnings(as.numeric(high))
  if (is.na(low) || is.na(high)) NULL else bounds(low, high)
}
