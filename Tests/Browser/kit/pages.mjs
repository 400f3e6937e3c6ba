// Servers of tests, and one of pages, so that their origin is not that of the tested server.
import { createServer } from "node:http";
import { register, unregister } from "./server.mjs";

/** Starts an HTTP server, which ends with the tests. */
export async function serve(handler) {
  const server = createServer(handler);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => {
    unregister(server);
    server.closeAllConnections();
    server.close();
  };
  register(server, stop);
  const { port } = server.address();
  return { port, url: `http://127.0.0.1:${port}`, stop };
}

/**
 * Serves the same document at every path, except those in `documents`. Paths that contain `strict` have a
 * Content-Security-Policy without workers.
 */
export async function servePages(moduleOrigin, documents = {}) {
  const document = '<!doctype html><meta charset="utf-8"><title>Test</title><input type="file" id="file" multiple>';
  const { port, url, stop } = await serve((request, response) => {
    const policy = request.url.includes("strict")
      ? `default-src 'none'; script-src ${moduleOrigin}; connect-src *; worker-src 'none'` : "default-src * blob:";
    const own = documents[request.url];
    response.writeHead(200, {
      "Content-Type": own?.type ?? "text/html; charset=utf-8", ...(own ? {} : { "Content-Security-Policy": policy }),
    });
    response.end(own?.content ?? document);
  });
  return { url: `http://localhost:${port}`, otherUrl: url, documents, stop };
}
