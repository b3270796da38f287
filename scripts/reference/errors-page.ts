import { HubError, type HubErrorCode } from '../../src/platform/errors.ts';
import { toErrorResponse } from '../../src/platform/http/answer.ts';
import { code, generatedNote } from './markdown.ts';

/** When each error comes and how to fix it. */
const explanations = {
  bad_request: [
    'The request does not make sense: a wrong body, a missing parameter, a faulty link.',
    'Read the message; it names the part that is wrong.',
  ],
  invalid_path: [
    'The address can be read in more than one way (dot segments, encoded slashes, backslashes), so the gateway would not decide on it.',
    'Send the path in its plain form.',
  ],
  unauthenticated: [
    'No user is logged in, and the request cannot be sent to the login.',
    'Log in, or send a token.',
  ],
  forbidden: [
    'The caller is known and may not do this, or presented a token that is unknown, expired or revoked.',
    'Ask for the scope that the hint names, or make a new token.',
  ],
  csrf_failed: [
    'A change by cookie came without the token of the page it should come from.',
    'Reload the page and send the form again; programs should use an API token.',
  ],
  recent_login_required: [
    'A change that outlives the login came by cookie, and the user gave no password, code or external login within `Authenticator.recent_login_seconds`.',
    'Open the page that `confirm_url` names, then send the change again; programs should use an API token.',
  ],
  not_found: [
    'There is no such thing, or the caller may not know of it.',
    'Check the name, and whether a filter of your scope covers it.',
  ],
  method_not_allowed: ['The address exists, but not for this method.', 'See the HTTP API.'],
  not_acceptable: [
    'The answer exists in no form that the `Accept` header allows.',
    'Accept `application/json` or `text/html`.',
  ],
  conflict: [
    'The change contradicts what is there: a name that is taken, a server that is running.',
    'Look at the present state and decide again.',
  ],
  gone: [
    'An operation of old versions of JupyterHub that the hub does without.',
    'Do what the hint says.',
  ],
  precondition_failed: [
    'What a change with `If-Match` is about has been changed since it was read.',
    'Read it again, and decide again.',
  ],
  request_timeout: ['The request took too long to arrive.', 'Send it again.'],
  payload_too_large: [
    'The body is larger than the limit.',
    'Send less, or raise `Proxy.max_body_size` (forwarded) or `Proxy.api_body_size` (API).',
  ],
  unsupported_media_type: [
    'The body is not of a type that the address takes.',
    'Send `application/json` to the API, a form to a page.',
  ],
  misdirected: [
    'With `Hub.subdomain_host`, the address belongs to another host: a page or API call of the hub on the host of a user or service, or the other way round; or the hub does not go by the name in `Host`.',
    'Go to the host that the hint names. Let a proxy in front of the hub pass on `Host` as it came.',
  ],
  server_not_running: [
    "The user's server is stopped.",
    'Start it on the home page, or with `POST /hub/api/users/{name}/server`.',
  ],
  too_many_requests: [
    'A limit was reached: failed logins, servers that start or run at once.',
    'Wait as long as `Retry-After` says; an administrator can lift a lock-out.',
  ],
  header_too_large: [
    'The request headers are larger than the limit, often by cookies of many apps.',
    'Delete old cookies, or raise `Proxy.max_header_size`.',
  ],
  internal: [
    'An unforeseen error; the answer carries an `error_id`, and the log the same id with the cause.',
    'Look the id up in the log of the hub and report what you find.',
  ],
  not_implemented: [
    'The body of the request has a transfer coding other than `chunked`, such as `gzip`.',
    'Send it with `Content-Length`, or with `Transfer-Encoding: chunked` alone; `Content-Encoding` is passed on.',
  ],
  spawn_failed: [
    'A server could not be started, or ended before it answered; the message says why.',
    "Look at the last lines of its output, on the server's page or in its log.",
  ],
  upstream_failed: [
    'A server or service answered with something that is no valid HTTP, or broke off before its answer.',
    "Look at the app's output.",
  ],
  unavailable: [
    'The server or service is not ready, or cannot be reached; or the hub is stopping.',
    'Wait; the page tries again by itself. See the state of the service on the admin page.',
  ],
  upstream_timeout: [
    'The server or service did not begin its answer in time.',
    'Find out what it waits for, or raise `Proxy.upstream_timeout` or the `upstream_timeout` of the service.',
  ],
  version_not_supported: [
    'The request line names a version other than HTTP/1.1 and HTTP/1.0, or none.',
    'Use HTTP/1.1; a proxy in front of the hub can speak HTTP/2 with browsers.',
  ],
  storage_unavailable: [
    'The database is locked, full, read-only or away.',
    "Look at the hub's log for the reason; nothing was half done.",
  ],
} as const satisfies Record<HubErrorCode, readonly [cause: string, fix: string]>;

/** Every error code. */
export const errorCodes = Object.keys(explanations) as readonly HubErrorCode[];

/** The reference page of the errors. */
export function errorsPage(): string {
  const rows = errorCodes
    .map((errorCode) => ({
      errorCode,
      status: toErrorResponse(new HubError(errorCode, '')).status,
    }))
    .sort((left, right) => left.status - right.status)
    .map(({ errorCode, status }) => {
      const [cause, fix] = explanations[errorCode];
      return `| ${code(errorCode)} | ${status} | ${cause} | ${fix} |`;
    });
  return `# Errors

${generatedNote}

A program gets JSON, a browser a page that says the same and what to do next. The members are always these:

\`\`\`json
{
  "status": 404,
  "code": "not_found",
  "message": "There is no such server.",
  "hint": "What can be done, where something can.",
  "error_id": "Only with internal errors: look it up in the log."
}
\`\`\`

\`code\` never changes its meaning; \`message\` and \`hint\` are for people and may be reworded. Where waiting
helps, the answer has \`Retry-After\` in seconds.

| code | status | when | how to fix it |
|---|---|---|---|
${rows.join('\n')}

## OAuth

The OAuth endpoints speak the language of their RFCs instead: \`error\` and \`error_description\`, with the codes
of RFC 6749 §4.1.2.1 and §5.2 and RFC 6750 §3.1 (\`invalid_request\`, \`invalid_client\`, \`invalid_grant\`,
\`unauthorized_client\`, \`unsupported_grant_type\`, \`unsupported_response_type\`, \`invalid_scope\`,
\`access_denied\`, \`invalid_token\`, \`insufficient_scope\`), of RFC 8707 §2 (\`invalid_target\`)
and of OpenID Connect Core 1.0 §3.1.2.6 (\`login_required\`,
\`consent_required\`, \`interaction_required\`, \`request_not_supported\`, \`request_uri_not_supported\`,
\`registration_not_supported\`). Until the redirect URI is trusted, an authorization
request that fails shows a page and redirects nowhere.

## Exit codes of the command

| code | meaning |
|---|---|
| 0 | done |
| 1 | anything else, such as a port that is taken; the message says what and how to fix it |
| 2 | the configuration is wrong; every problem is listed |
`;
}
