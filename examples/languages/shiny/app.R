library(shiny)

# Shiny hands the headers of the request that opened the page to the session, in capitals.
visitor <- function(request) {
  list(
    name = URLdecode(request$HTTP_X_HUB_USER),
    groups = vapply(strsplit(request$HTTP_X_HUB_GROUPS, ",")[[1]], URLdecode, "")
  )
}

# A function makes the page for each visitor.
ui <- function(request) {
  if (is.null(request$HTTP_X_HUB_USER)) {
    return(httpResponse(403L, content = "This page is for visitors of the hub."))
  }
  who <- visitor(request)
  fluidPage(
    p(sprintf("Hello, %s. Groups: %s", who$name, paste(who$groups, collapse = ", "))),
    sliderInput("number", "A number", 1, 100, 42),
    textOutput("square")
  )
}

server <- function(input, output, session) {
  output$square <- renderText(sprintf("Its square: %d", input$number^2))
}

port <- as.integer(sub(".*:", "", sub("/$", "", Sys.getenv("HUB_SERVICE_URL"))))
shinyApp(ui, server, options = list(host = "127.0.0.1", port = port))
