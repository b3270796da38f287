import { HubError } from '../../platform/errors.ts';
import { type Phrase, type Text, text } from '../../platform/texts/text.ts';
import { oneLine, whyUnreachable } from '../unreachable.ts';

/** Whether the engine itself refused: then it is up. */
export function isEngineAnswer(thrown: unknown): thrown is Error & { readonly statusCode: number } {
  return thrown instanceof Error && 'statusCode' in thrown && typeof thrown.statusCode === 'number';
}

/** Whether what was asked for is not there (404), for example a container removed by hand. */
export function isMissing(thrown: unknown): boolean {
  return isEngineAnswer(thrown) && thrown.statusCode === 404;
}

/** Whether it is so already (304), or two requests did the same at once (409). */
export function isDoneAlready(thrown: unknown): boolean {
  return isEngineAnswer(thrown) && (thrown.statusCode === 304 || thrown.statusCode === 409);
}

/** The engine's own words, in one line. */
export function engineMessage(thrown: unknown): string {
  const json = thrown instanceof Error && 'json' in thrown ? thrown.json : undefined;
  const own =
    typeof json === 'object' && json !== null && 'message' in json ? json.message : undefined;
  return oneLine(
    typeof own === 'string' ? own : thrown instanceof Error ? thrown.message : String(thrown),
  );
}

const reasons: Readonly<Record<string, Text>> = {
  ENOENT: text`its socket is not there; is it running?`,
  ECONNREFUSED: text`it is not running`,
  EACCES: text`the hub may not open its socket; its account must be in the group of the socket`,
};

/** The error for an engine that does not answer. */
export function explainUnreachable(thrown: unknown, address: string): HubError {
  const reason = reasonOf(thrown);
  return new HubError(
    'unavailable',
    text`The container engine at ${address} does not answer: ${reason}.`,
    {
      cause: thrown,
    },
  );
}

function reasonOf(thrown: unknown): Phrase {
  // The engine refuses a certificate after the handshake, by an alert (RFC 8446 §6.2).
  return thrown instanceof Error && /alert (?:bad|unknown|certificate)\b/.test(thrown.message)
    ? text`it refuses the hub's certificate; check tls_cert and tls_key`
    : whyUnreachable(thrown, reasons);
}

/** Whether the engine could not be asked, which says nothing about its containers. */
export function isUnreachable(thrown: unknown): boolean {
  return thrown instanceof HubError && thrown.code === 'unavailable';
}

/** Says why a container could not be created or started, in a sentence for its user. */
export function explainRefusal(thrown: unknown, image: string): HubError {
  const message = engineMessage(thrown);
  const explained = refusals.find(({ pattern }) => pattern.test(message));
  const sentence =
    explained === undefined
      ? text`The container engine refused: ${message}.`
      : explained.sentence(image, message);
  return new HubError('upstream_failed', sentence, { cause: thrown });
}

interface Refusal {
  readonly pattern: RegExp;
  readonly sentence: (image: string, message: string) => Text;
}

const refusals: readonly Refusal[] = [
  {
    pattern: /exec format error/i,
    sentence: (image) =>
      text`The image ${image} is for another processor architecture than the engine's machine.`,
  },
  {
    pattern:
      /executable file not found|no such file or directory.*(?:exec|command)|(?:exec|stat) \S+: no such file/i,
    sentence: (image, message) =>
      text`The image ${image} has no such command: ${/"([^"]+)": (?:executable|stat)/.exec(message)?.[1] ?? message}.`,
  },
  {
    pattern:
      /bind source path does not exist|no such file or directory.*mount|statfs \S+: no such file/i,
    sentence: (_image, message) =>
      text`A folder to be mounted does not exist on the engine's machine: ${/(?:exist: |statfs )(\S+?):?(?: |$)/.exec(message)?.[1] ?? message}.`,
  },
  {
    pattern: /docker-init|catatonit|init binary/i,
    sentence: (_image, message) => text`The container engine has no init program: ${message}.`,
  },
  {
    pattern: /no space left on device|disk quota exceeded/i,
    sentence: () => text`The disk of the container engine is full.`,
  },
  {
    pattern: /network \S+ not found|unable to find network|network not found/i,
    sentence: (_image, message) => text`A network of the servers does not exist: ${message}.`,
  },
  {
    pattern: /could not select device driver|nvidia/i,
    sentence: (_image, message) => text`The container engine has no GPUs to give: ${message}.`,
  },
];

/** Says why an image could not be pulled. The engine's words hold no password. */
export function explainPull(message: string, image: string): HubError {
  return new HubError('upstream_failed', pullSentence(message, image));
}

function pullSentence(message: string, image: string): Text {
  if (/unauthorized|no basic auth|authentication required|denied|forbidden/i.test(message)) {
    return text`The image ${image} is private, or there is none of that name: its registry does not give it without other credentials.`;
  }
  if (
    /no matching manifest|no image found in (?:manifest list|image index)|does not match the specified platform/i.test(
      message,
    )
  ) {
    return text`The image ${image} does not exist for the processor architecture of the engine's machine.`;
  }
  if (
    /manifest unknown|not found|name unknown|no such image|repository does not exist/i.test(message)
  ) {
    return text`There is no image ${image} in its registry.`;
  }
  if (/no space left on device|disk quota exceeded/i.test(message)) {
    return text`The image ${image} could not be pulled: the disk of the container engine is full.`;
  }
  return text`The image ${image} could not be pulled: ${message}.`;
}
