import { HubError } from '../../errors.ts';
import { inEnglish } from '../../texts/text.ts';

/** What the Kubernetes API says of itself when it refuses (API reference, Status). */
export interface ApiStatus {
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
}

/** The Kubernetes API answered, and refused. */
export class ApiRefusal extends Error {
  override readonly name = 'ApiRefusal';
  readonly statusCode: number;
  readonly reason: string;

  constructor(statusCode: number, { message, reason = '' }: ApiStatus) {
    super(oneLine(message ?? inEnglish`it answered with status ${statusCode}`));
    this.statusCode = statusCode;
    this.reason = reason;
  }
}

export function isMissing(thrown: unknown): boolean {
  return thrown instanceof ApiRefusal && thrown.statusCode === 404;
}

/** Whether an object of that name is there already, not one that was changed meanwhile. */
export function alreadyExists(thrown: unknown): boolean {
  return thrown instanceof ApiRefusal && thrown.reason === 'AlreadyExists';
}

/** Whether what a watch goes on from is too old (410): everything must be listed again. */
export function isExpired(thrown: unknown): boolean {
  return thrown instanceof ApiRefusal && thrown.statusCode === 410;
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: inEnglish`nothing listens there`,
  ECONNRESET: inEnglish`it closed the connection`,
  EPIPE: inEnglish`it closed the connection`,
  UND_ERR_SOCKET: inEnglish`it closed the connection`,
  ENOTFOUND: inEnglish`its host name is unknown`,
  EAI_AGAIN: inEnglish`its host name cannot be looked up`,
  ETIMEDOUT: inEnglish`it took too long`,
  UND_ERR_CONNECT_TIMEOUT: inEnglish`it took too long`,
  UND_ERR_HEADERS_TIMEOUT: inEnglish`it took too long`,
  UND_ERR_BODY_TIMEOUT: inEnglish`it took too long`,
  EHOSTUNREACH: inEnglish`its host cannot be reached`,
  ENETUNREACH: inEnglish`its network cannot be reached`,
  SELF_SIGNED_CERT_IN_CHAIN: inEnglish`its certificate is not of the configured authority`,
  DEPTH_ZERO_SELF_SIGNED_CERT: inEnglish`its certificate is not of the configured authority`,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: inEnglish`its certificate is not of the configured authority`,
  ERR_TLS_CERT_ALTNAME_INVALID: inEnglish`its certificate is for another name`,
  CERT_HAS_EXPIRED: inEnglish`its certificate has expired`,
};

/** The error for an API that does not answer. */
export function explainUnreachable(thrown: unknown, server: string): HubError {
  const reason = whyUnreachable(thrown);
  return new HubError(
    'unavailable',
    `The Kubernetes API at ${server} does not answer: ${reason}.`,
    {
      cause: thrown,
    },
  );
}

function whyUnreachable(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.name === 'TimeoutError' || thrown.name === 'AbortError')
    return inEnglish`it took too long`;
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : '';
  return reasons[code] ?? oneLine(thrown.message);
}

const longestMessage = 500;

/** An error's own words, in one line without a full stop. */
export function messageOf(thrown: unknown): string {
  return oneLine(thrown instanceof Error ? thrown.message : String(thrown));
}

export function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim().replace(/\.$/, '');
  return line.length > longestMessage ? `${line.slice(0, longestMessage)}…` : line;
}

interface Refusal {
  readonly pattern: RegExp;
  readonly sentence: (match: RegExpExecArray) => string;
  readonly hint?: string;
}

const refusals: readonly Refusal[] = [
  {
    pattern: /exceeded quota: ([^,]+), requested: (.+), used: (.+), limited: (.+)$/,
    sentence: ([, quota = '', requested = '', used = '', limited = '']) =>
      inEnglish`The quota ${quota} of the namespace is used up: ${requested} asked for, ${used} of ${limited} in use.`,
    hint: inEnglish`Stop another server, choose a smaller profile, or ask the administrator.`,
  },
  {
    pattern: /failed quota: ([^:]+): must specify (.+)$/,
    sentence: ([, quota = '', missing = '']) =>
      inEnglish`The quota ${quota} of the namespace admits only servers with limits: ${missing} is missing.`,
    hint: inEnglish`The administrator must set Spawner.mem_limit and cpu_limit, or those of the profile.`,
  },
  {
    pattern: /violates PodSecurity "([^"]+)": (.+)$/,
    sentence: ([, level = '', violations = '']) =>
      inEnglish`The namespace admits only pods that keep the security standard ${level}: ${violations}.`,
    hint: inEnglish`The administrator must correct KubernetesSpawner.pod_patch and volumes, or the label of the namespace.`,
  },
  {
    pattern: /admission webhook "([^"]+)" denied the request: (.+)$/,
    sentence: ([, webhook = '', reason = '']) =>
      inEnglish`The admission webhook ${webhook} denied the server: ${reason}.`,
  },
  {
    pattern:
      /(?:ValidatingAdmissionPolicy|admission policy) '?"?([\w.-]+)'?"? .*denied request: (.+)$/,
    sentence: ([, policy = '', reason = '']) =>
      inEnglish`The admission policy ${policy} denied the server: ${reason}.`,
  },
  {
    pattern:
      /(maximum|minimum) (\w+) usage per (?:Container|Pod) is ([^,]+), but (\w+) is ([\w.]+)/,
    sentence: ([, bound = '', resource = '', at = '', kind = '', asked = '']) =>
      bound === 'maximum'
        ? inEnglish`The namespace allows at most ${at} of ${resource} for a server; its ${kind} is ${asked}.`
        : inEnglish`The namespace allows at least ${at} of ${resource} for a server; its ${kind} is ${asked}.`,
    hint: inEnglish`Choose another profile, or ask the administrator.`,
  },
  {
    pattern: /error looking up service account \S+: serviceaccount "([^"]+)" not found/,
    sentence: ([, name = '']) => inEnglish`The namespace has no service account ${name}.`,
    hint: inEnglish`The administrator must create it, or correct KubernetesSpawner.service_account.`,
  },
  {
    pattern: /no PriorityClass with name (\S+) was found/,
    sentence: ([, name = '']) => inEnglish`The cluster has no PriorityClass ${name}.`,
    hint: inEnglish`The administrator must create it, or correct KubernetesSpawner.priority_class.`,
  },
  {
    pattern: /^namespaces "([^"]+)" not found/,
    sentence: ([, name = '']) => inEnglish`The cluster has no namespace ${name}.`,
    hint: inEnglish`The administrator must create it, or correct KubernetesSpawner.namespace.`,
  },
  {
    pattern: /namespace (\S+) because it is being terminated/,
    sentence: ([, name = '']) => inEnglish`The namespace ${name} is being deleted.`,
  },
  {
    pattern: /User "([^"]+)" cannot (\w+) resource "([^"]+)"/,
    sentence: ([, user = '', verb = '', resource = '']) =>
      inEnglish`The hub's account ${user} may not ${verb} ${resource} in the namespace of the servers.`,
    hint: inEnglish`The administrator must give it a Role with that right.`,
  },
];

/** Says why the API did not create an object, in a sentence for the user. The API's words hold no secret. */
export function explainRefusal(thrown: ApiRefusal, what: string): HubError {
  for (const { pattern, sentence, hint } of refusals) {
    const match = pattern.exec(thrown.message);
    if (match === null) continue;
    return new HubError('upstream_failed', sentence(match), {
      cause: thrown,
      ...(hint === undefined ? {} : { hint }),
    });
  }
  const message =
    thrown.statusCode === 401
      ? "Kubernetes does not accept the hub's credentials."
      : `Kubernetes refused ${what}: ${thrown.message}.`;
  return new HubError('upstream_failed', message, { cause: thrown });
}
