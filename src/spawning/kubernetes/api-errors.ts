import { HubError, TextError } from '../../platform/errors.ts';
import { joined, type Phrase, type Text, text } from '../../platform/texts/text.ts';
import { oneLine, whyUnreachable } from '../unreachable.ts';

/** What the Kubernetes API says of itself when it refuses (API reference, Status). */
export interface ApiStatus {
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
}

/** The Kubernetes API answered, and refused. */
export class ApiRefusal extends TextError {
  override readonly name = 'ApiRefusal';
  readonly statusCode: number;
  readonly reason: string;

  constructor(statusCode: number, { message, reason = '' }: ApiStatus) {
    super(message === undefined ? text`it answered with status ${statusCode}` : oneLine(message));
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

/** The error for an API that does not answer. */
export function explainUnreachable(thrown: unknown, server: string): HubError {
  const reason = whyUnreachable(thrown, { ECONNREFUSED: text`nothing listens there` });
  return new HubError(
    'unavailable',
    text`The Kubernetes API at ${server} does not answer: ${reason}.`,
    {
      cause: thrown,
    },
  );
}

/** What an error says, in one line without a full stop. */
export function messageOf(thrown: unknown): Phrase {
  if (thrown instanceof ApiRefusal) return thrown.shown.message;
  return oneLine(thrown instanceof Error ? thrown.message : String(thrown));
}

/** What an error says, as a sentence. */
export function sentenceOf(thrown: unknown): Phrase {
  return thrown instanceof HubError ? thrown.shown.message : joined([messageOf(thrown), '.'], '');
}

interface Refusal {
  readonly pattern: RegExp;
  readonly sentence: (match: RegExpExecArray) => Text;
  readonly hint?: Text;
}

const refusals: readonly Refusal[] = [
  {
    pattern: /exceeded quota: ([^,]+), requested: (.+), used: (.+), limited: (.+)$/,
    sentence: ([, quota = '', requested = '', used = '', limited = '']) =>
      text`The quota ${quota} of the namespace is used up: ${requested} asked for, ${used} of ${limited} in use.`,
    hint: text`Stop another server, choose a smaller profile, or ask the administrator.`,
  },
  {
    pattern: /failed quota: ([^:]+): must specify (.+)$/,
    sentence: ([, quota = '', missing = '']) =>
      text`The quota ${quota} of the namespace admits only servers with limits: ${missing} is missing.`,
    hint: text`The administrator must set Spawner.mem_limit and cpu_limit, or those of the profile.`,
  },
  {
    pattern: /violates PodSecurity "([^"]+)": (.+)$/,
    sentence: ([, level = '', violations = '']) =>
      text`The namespace admits only pods that keep the security standard ${level}: ${violations}.`,
    hint: text`The administrator must correct KubernetesSpawner.pod_patch and volumes, or the label of the namespace.`,
  },
  {
    pattern: /admission webhook "([^"]+)" denied the request: (.+)$/,
    sentence: ([, webhook = '', reason = '']) =>
      text`The admission webhook ${webhook} denied the server: ${reason}.`,
  },
  {
    pattern:
      /(?:ValidatingAdmissionPolicy|admission policy) '?"?([\w.-]+)'?"? .*denied request: (.+)$/,
    sentence: ([, policy = '', reason = '']) =>
      text`The admission policy ${policy} denied the server: ${reason}.`,
  },
  {
    pattern:
      /(maximum|minimum) (\w+) usage per (?:Container|Pod) is ([^,]+), but (\w+) is ([\w.]+)/,
    sentence: ([, bound = '', resource = '', at = '', kind = '', asked = '']) =>
      bound === 'maximum'
        ? text`The namespace allows at most ${at} of ${resource} for a server; its ${kind} is ${asked}.`
        : text`The namespace allows at least ${at} of ${resource} for a server; its ${kind} is ${asked}.`,
    hint: text`Choose another profile, or ask the administrator.`,
  },
  {
    pattern: /error looking up service account \S+: serviceaccount "([^"]+)" not found/,
    sentence: ([, name = '']) => text`The namespace has no service account ${name}.`,
    hint: text`The administrator must create it, or correct KubernetesSpawner.service_account.`,
  },
  {
    pattern: /no PriorityClass with name (\S+) was found/,
    sentence: ([, name = '']) => text`The cluster has no PriorityClass ${name}.`,
    hint: text`The administrator must create it, or correct KubernetesSpawner.priority_class.`,
  },
  {
    pattern: /^namespaces "([^"]+)" not found/,
    sentence: ([, name = '']) => text`The cluster has no namespace ${name}.`,
    hint: text`The administrator must create it, or correct KubernetesSpawner.namespace.`,
  },
  {
    pattern: /namespace (\S+) because it is being terminated/,
    sentence: ([, name = '']) => text`The namespace ${name} is being deleted.`,
  },
  {
    pattern: /User "([^"]+)" cannot (\w+) resource "([^"]+)"/,
    sentence: ([, user = '', verb = '', resource = '']) =>
      text`The hub's account ${user} may not ${verb} ${resource} in the namespace of the servers.`,
    hint: text`The administrator must give it a Role with that right.`,
  },
];

/** Says why the API did not create an object, in a sentence for the user. The API's words hold no secret. */
export function explainRefusal(thrown: ApiRefusal, what: Phrase): HubError {
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
      ? text`Kubernetes does not accept the hub's credentials.`
      : text`Kubernetes refused ${what}: ${messageOf(thrown)}.`;
  return new HubError('upstream_failed', message, { cause: thrown });
}
