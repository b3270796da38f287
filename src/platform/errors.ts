import type { Phrase } from './texts/text.ts';

/** What can go wrong in the hub, as a closed set of codes that never change their meaning. */
export type HubErrorCode =
  | 'bad_request'
  | 'invalid_path'
  | 'unauthenticated'
  | 'forbidden'
  | 'csrf_failed'
  | 'recent_login_required'
  | 'not_found'
  | 'method_not_allowed'
  | 'not_acceptable'
  | 'conflict'
  | 'gone'
  | 'precondition_failed'
  | 'request_timeout'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'misdirected'
  | 'server_not_running'
  | 'too_many_requests'
  | 'header_too_large'
  | 'internal'
  | 'not_implemented'
  | 'spawn_failed'
  | 'upstream_failed'
  | 'unavailable'
  | 'upstream_timeout'
  | 'version_not_supported'
  | 'storage_unavailable';

export interface HubErrorOptions {
  readonly cause?: unknown;
  /** What the person asking can do about it. Public. */
  readonly hint?: Phrase;
  /** Seconds until another attempt makes sense; sent as `Retry-After`. */
  readonly retryAfterSeconds?: number;
  /** Whether it is a refusal that looks like something that is not there. */
  readonly isRefusal?: true;
  /** Further public members of the JSON body, for programs that read it. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** What of the request is wrong, where it is one member; a form says it there. */
  readonly field?: FieldProblem;
}

export interface FieldProblem {
  /** Dotted path of the member. */
  readonly name: string;
  readonly problem: Phrase;
}

/**
 * An error whose message people read: in English for programs and the log, while pages show `shown` in the language of
 * their reader.
 */
export class TextError extends Error {
  readonly shown: { readonly message: Phrase; readonly hint: Phrase | undefined };

  constructor(message: Phrase, options: Pick<HubErrorOptions, 'cause' | 'hint'> = {}) {
    super(String(message), options.cause === undefined ? undefined : { cause: options.cause });
    this.shown = { message, hint: options.hint };
  }
}

/** What an error says, as pages show it. */
export function messageOf(thrown: unknown): Phrase {
  if (thrown instanceof TextError) return thrown.shown.message;
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/**
 * An expected failure of the domain. It knows no HTTP: `http/error-response.ts` gives each code its
 * status. The message is fit for the person asking and never holds a secret.
 */
export class HubError extends TextError {
  override readonly name = 'HubError';
  readonly code: HubErrorCode;
  readonly hint: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  readonly field: FieldProblem | undefined;
  /** Whether the caller was refused, whatever the code says. */
  readonly isRefusal: boolean;

  constructor(code: HubErrorCode, message: Phrase, options: HubErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.hint = options.hint === undefined ? undefined : String(options.hint);
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.details = options.details;
    this.field = options.field;
    this.isRefusal = options.isRefusal ?? (code === 'forbidden' || code === 'csrf_failed');
  }
}

/** Whether it failed only because the storage did not work, so that it may succeed later. */
export function isStorageUnavailable(error: unknown): boolean {
  return error instanceof HubError && error.code === 'storage_unavailable';
}

/** One problem of a configuration file: where it is and how to fix it. */
export interface ConfigProblem {
  /** Dotted path, for example `Hub.services[0].url`. */
  readonly path: string;
  readonly message: string;
  /** Where it is in the file, both counted from 1. */
  readonly position?: { readonly line: number; readonly column: number } | undefined;
}

/** A problem in one line: where it is in the file, its setting, and what is wrong. */
export function describeProblem({ path, message, position: at }: ConfigProblem): string {
  const place = at === undefined ? '' : `line ${at.line}:${at.column}: `;
  return `${place}${path === '' ? '' : `${path}: `}${message}`;
}

/** Thrown with every problem of a configuration at once; the process ends with exit code 2. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[], source = 'the configuration') {
    const lines = problems.map((problem) => `  ${describeProblem(problem)}`);
    super(`${source} cannot be used:\n${lines.join('\n')}`);
    this.problems = problems;
  }
}

/** Thrown when the hub cannot start for a reason outside its configuration; exit code 1. */
export class StartupError extends Error {
  override readonly name = 'StartupError';
}
