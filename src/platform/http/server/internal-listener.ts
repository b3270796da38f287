import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { HubError } from '../../errors.ts';
import { canonicalPath } from '../canonical-path.ts';
import type { ErrorAnswers } from '../error-answers.ts';
import { hostProblem } from '../host-header.ts';

/**
 * The listener of the internal address: the API, health, readiness and metrics, and nothing for
 * browsers. `/hub/api` without the base path is answered too, since clients have it as a default.
 */
export function createInternalListener(options: {
  readonly answerHub: RequestListener;
  readonly apiPath: string;
  readonly hubPath: string;
  readonly errorAnswers: ErrorAnswers;
}): RequestListener {
  const { answerHub, apiPath, hubPath, errorAnswers } = options;
  const allowed = [apiPath, `${hubPath}health`, `${hubPath}ready`, `${hubPath}metrics`];

  function refuse(req: IncomingMessage, res: ServerResponse, error: HubError): void {
    errorAnswers.respond(req, res, error, { wantsPage: false });
  }

  return (req: IncomingMessage, res: ServerResponse) => {
    const wrongHost = hostProblem(req);
    if (wrongHost !== undefined) {
      refuse(req, res, wrongHost);
      return;
    }
    const path = canonicalPath(req.url ?? '');
    if (path === undefined) {
      refuse(
        req,
        res,
        new HubError('invalid_path', 'This address can be read in more than one way.'),
      );
      return;
    }
    const isShort = hubPath !== '/hub/' && path.pathname.startsWith('/hub/');
    const target = isShort ? hubPath + path.target.slice('/hub/'.length) : path.target;
    const [pathname = ''] = target.split('?', 1);
    if (
      !allowed.some((prefix) => `${pathname}/`.startsWith(prefix) || pathname.startsWith(prefix))
    ) {
      refuse(req, res, new HubError('not_found', 'Only the API is served at this address.'));
      return;
    }
    req.url = target;
    answerHub(req, res);
  };
}
