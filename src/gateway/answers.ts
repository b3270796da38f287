import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { HubError } from '../errors.ts';
import { prefersHtml } from '../http/content-negotiation.ts';
import type { RenderErrorPage } from '../http/error-middleware.ts';
import { type ErrorResponse, errorBody, toErrorResponse } from '../http/error-response.ts';
import { pageContentSecurityPolicy } from '../http/security-headers.ts';
import { answerErrorOnSocket } from '../http/socket-response.ts';
import type { Route } from '../proxy/route.ts';
import type { GatewayAnswers } from './gateway.ts';

/** Creates the answers the gateway gives itself. */
export function createGatewayAnswers(deps: {
  readonly renderErrorPage: RenderErrorPage;
  /** The page for a service or server that is not ready; it tries again by itself. */
  readonly renderNotReadyPage: (
    route: Route,
    url: string,
  ) => { readonly html: string; readonly error: HubError };
  readonly log: Logger;
}): GatewayAnswers {
  const { renderErrorPage, renderNotReadyPage, log } = deps;

  function respond(thrown: HubError): ErrorResponse {
    const response = toErrorResponse(thrown);
    if (response.isBug) {
      log.error(
        { err: thrown.cause ?? thrown, errorId: response.errorId },
        'the gateway failed unexpectedly',
      );
    }
    return response;
  }

  function write(
    req: IncomingMessage,
    res: ServerResponse,
    response: ErrorResponse,
    html: () => string,
  ): void {
    if (res.headersSent || res.destroyed) {
      res.destroy();
      return;
    }
    res.statusCode = response.status;
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('X-Content-Type-Options', 'nosniff');
    if (response.retryAfterSeconds !== undefined) {
      res.setHeader('Retry-After', String(Math.ceil(response.retryAfterSeconds)));
    }
    const isPage = prefersHtml(req.headers);
    const body = isPage ? html() : errorBody(response);
    res.setHeader('Content-Type', isPage ? 'text/html; charset=utf-8' : 'application/json');
    if (isPage) res.setHeader('Content-Security-Policy', pageContentSecurityPolicy);
    res.setHeader('Content-Length', Buffer.byteLength(body));
    // What is left of an upload nobody will read must not be taken for the next request.
    const hasBody =
      req.headers['transfer-encoding'] !== undefined || req.headers['content-length'] !== undefined;
    if (hasBody && !req.complete) res.setHeader('Connection', 'close');
    res.end(req.method === 'HEAD' ? undefined : body);
  }

  return {
    error(req, res, error) {
      const response = respond(error);
      write(req, res, response, () => renderErrorPage(response, ''));
    },
    notReady(req, res, route) {
      const { html, error } = renderNotReadyPage(route, req.url ?? '/');
      write(req, res, toErrorResponse(error), () => html);
    },
    errorOnSocket(socket, error) {
      if (error.code === 'internal') respond(error);
      answerErrorOnSocket(socket, error);
    },
  };
}
