import type { IncomingMessage, ServerResponse } from 'node:http';
import { writeAnswer } from '../platform/http/answer.ts';
import { prefersHtml } from '../platform/http/content-negotiation.ts';
import { toAnswer } from './decision.ts';
import type { HubAuth } from './hub-auth.ts';
import { type AdapterOptions, reportFailure } from './node-adapter.ts';

/** Middleware of Express and everything that is called like it. */
export type ExpressMiddleware = (
  request: IncomingMessage & { readonly originalUrl?: string },
  response: ServerResponse & { locals?: Record<string, unknown> },
  next: (error?: unknown) => void,
) => void;

/** Makes Express middleware that lets allowed requests pass, with who it is in `res.locals.hubAccess`. */
export function expressMiddleware(
  hubAuth: HubAuth,
  options: AdapterOptions = {},
): ExpressMiddleware {
  const { onError = console.error } = options;
  return (request, response, next) => {
    // The original URL: a mounted application sees only the rest of it.
    const { method, headers, originalUrl: url = request.url } = request;
    hubAuth
      .authenticate({ method, url, headers })
      .then((decision) => {
        if (decision.kind === 'allowed') {
          response.locals = { ...response.locals, hubAccess: decision };
          next();
          return;
        }
        reportFailure(decision, onError);
        writeAnswer(request, response, toAnswer(decision, prefersHtml(headers)));
      })
      .catch(next);
  };
}
