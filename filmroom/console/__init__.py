"""The web console: what people look at and decide in. Server-rendered pages and, with the same data, `/api`.

`app` puts it together · `ask` is what a page is handed · `identity` who is asking · `page` how it is rendered ·
`*_pages` one file a page · `*_view` the data of a page, which `api/` hands out as JSON.

What is decided is decided in `flows`, what is asked of the store is in `store`; here is only what is shown, and to whom.
"""
