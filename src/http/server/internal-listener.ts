import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { HubError } from '../../errors.ts';
import { canonicalPath } from '../canonical-path.ts';
import { errorBody, toErrorResponse } from '../error-response.ts';

/**
 * Creates the listener of the internal address: the API, health and metrics, and nothing for
 * browsers. `/hub/api` without the base path is answered too, since clients have it as a default.
 */
export function createInternalListener(
  answerHub: RequestListener,
  apiPath: string,
  hubPath: string,
): RequestListener {
  const allowed = [apiPath, `${hubPath}health`, `${hubPath}metrics`];

  return (req: IncomingMessage, res: ServerResponse) => {
    const path = canonicalPath(req.url ?? '');
    if (path === undefined) {
      refuse(res, new HubError('invalid_path', 'This address can be read in more than one way.'));
      return;
    }
    const isShort = hubPath !== '/hub/' && path.pathname.startsWith('/hub/');
    const target = isShort ? hubPath + path.target.slice('/hub/'.length) : path.target;
    const [pathname = ''] = target.split('?', 1);
    if (
      !allowed.some((prefix) => `${pathname}/`.startsWith(prefix) || pathname.startsWith(prefix))
    ) {
      refuse(res, new HubError('not_found', 'Only the API is served at this address.'));
      return;
    }
    req.url = target;
    answerHub(req, res);
  };
}

function refuse(res: ServerResponse, error: HubError): void {
  const response = toErrorResponse(error);
  res.writeHead(response.status, { 'Content-Type': 'application/json', Connection: 'close' });
  res.end(errorBody(response));
}
