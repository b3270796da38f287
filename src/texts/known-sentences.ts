/**
 * Sentences of the hub that reach its pages as plain English: they are kept in the database, come from another process
 * or are strings of the plugin interface. Who writes one takes it from here, so that a page knows it again.
 */
import type { Language } from './language.ts';
import { message, type Phrase, type Text, type TextValue, text } from './text.ts';

type Sentence = (...values: TextValue[]) => Text;

/** Steps of a start. Only the last value of a sentence may have spaces, and a length of time. Of two that fit, the first counts. */
const startSteps = {
  requested: () => text`Server requested.`,
  starting: () => text`The server is starting.`,
  programStarted: () => text`The program is started.`,
  portTaken: () => text`The port was taken; trying another one.`,
  waitingForAnswer: () => text`The server has started; waiting for it to answer.`,
  ready: () => text`The server is ready.`,
  pullingBytes: (
    image: TextValue,
    done: TextValue,
    layers: TextValue,
    current: TextValue,
    total: TextValue,
  ) => text`Pulling the image ${image}: ${done} of ${layers} layers, ${current} of ${total} MB.`,
  pullingLayers: (image: TextValue, done: TextValue, layers: TextValue) =>
    text`Pulling the image ${image}: ${done} of ${layers} layers.`,
  pullingAnImage: () => text`Pulling the image.`,
  pulling: (image: TextValue) => text`Pulling the image ${image}.`,
  anImageThere: () => text`The image is there.`,
  imageThere: (image: TextValue) => text`The image ${image} is there.`,
  creatingContainer: () => text`Creating the container.`,
  containerCreated: () => text`The container is created.`,
  containerStarted: () => text`The container is started.`,
  creatingPod: () => text`Creating the pod.`,
  seekingNode: () => text`Looking for a node.`,
  nodeChosen: () => text`A node was chosen.`,
  nodePrepares: (node: TextValue) => text`The node ${node} prepares the server.`,
  waitingForNewNode: () => text`Waiting for a node that is being added.`,
  waitingForAdmission: () => text`Waiting for admission to the queue of the cluster.`,
  waitingForRoom: (reason: TextValue) => text`Waiting for a node with room: ${reason}.`,
  waitingForStorage: (reason: TextValue) => text`Waiting for storage: ${reason}.`,
  claimingVolume: (size: TextValue) => text`Claiming a volume of ${size}.`,
  serverStarted: () => text`The server is started.`,
  jobRuns: (job: TextValue, node: TextValue) => text`The job ${job} runs on ${node}.`,
} as const satisfies Readonly<Record<string, Sentence>>;

export const sentences = {
  ...startSteps,

  /** A length of time within another sentence. */
  seconds: (seconds: TextValue) =>
    message('{seconds, plural, one {{seconds} second} other {{seconds} seconds}}', { seconds }),

  // Why a server ended or did not start.
  endedEarlyWithCode: (code: TextValue) =>
    text`The server ended before it answered, with exit code ${code}.`,
  endedEarlyBySignal: (signal: TextValue) =>
    text`The server ended before it answered, by signal ${signal}.`,
  endedEarlyUnknown: () => text`The server ended before it answered, with an unknown exit code.`,
  endedEarly: (reason: TextValue) => text`The server ended before it answered: ${reason}.`,
  endedWithCode: (code: TextValue) => text`The server ended with exit code ${code}.`,
  endedBySignal: (signal: TextValue) => text`The server ended by signal ${signal}.`,
  endedUnknown: () => text`The server ended with an unknown exit code.`,
  ended: (reason: TextValue) => text`The server ended: ${reason}.`,
  noLongerRunning: () => text`The server is no longer running.`,
  endedWithoutHub: () => text`The server ended while the hub was not running.`,
  hubStopped: () => text`The hub stopped while the server was starting or stopping.`,
  startCancelled: () => text`The start was cancelled.`,
  notStartedAfter: (duration: TextValue, step: TextValue) =>
    text`The server did not start within ${duration}. The last step: ${step}`,
  notStartedWhile: (duration: TextValue, step: TextValue) =>
    text`The server did not start within ${duration}. ${step}`,
  notStarted: (duration: TextValue) => text`The server did not start within ${duration}.`,
  notStartedBecause: (reason: TextValue) => text`The server did not start: ${reason}.`,
  notPulled: (image: TextValue, duration: TextValue) =>
    text`The image ${image} was not pulled within ${duration}.`,
  notAnswering: (duration: TextValue, reason: TextValue) =>
    text`The server started but did not answer within ${duration}: ${reason}.`,
  cannotStart: (reason: TextValue) => text`The server cannot be started: ${reason}.`,
  outOfMemory: (limit: TextValue) => text`out of memory at ${limit}`,
  podGone: () => text`its pod is gone`,
  podDeleted: () => text`its pod was deleted`,
  containerRemoved: () => text`its container was removed`,

  // Why a service is not ready.
  exitedLeavingProcesses: (code: TextValue, seconds: TextValue, processes: TextValue) =>
    text`exited with code ${code} after ${seconds} s; what it left running in the background (${processes}) was ended: a service must stay in the foreground`,
  endedLeavingProcesses: (signal: TextValue, seconds: TextValue, processes: TextValue) =>
    text`was ended by ${signal} after ${seconds} s; what it left running in the background (${processes}) was ended: a service must stay in the foreground`,
  exited: (code: TextValue, seconds: TextValue) =>
    text`exited with code ${code} after ${seconds} s`,
  endedBySignalAfter: (signal: TextValue, seconds: TextValue) =>
    text`was ended by ${signal} after ${seconds} s`,
  notRunAnywhere: () => text`no instance of the hub runs it`,
  restarting: () => text`it is restarting`,
  nothingListens: (url: TextValue) => text`nothing listens on ${url}`,
  answersWithStatus: (url: TextValue, status: TextValue) =>
    text`${url} answers with status ${status}`,
  slowAnswer: (url: TextValue, seconds: TextValue) =>
    text`${url} does not answer within ${seconds} s`,

  // Roles that come with the hub.
  userRole: () => text`What every user may do.`,
  adminRole: () => text`What administrators may do.`,
  serverRole: () => text`What the token of a user's server allows the server itself.`,
  tokenRole: () => text`What a new access token allows when nothing else is asked for.`,

  // What the plugin `password` finds wrong with a password.
  shortPassword: (characters: TextValue) =>
    text`A password needs at least ${characters} characters.`,
  longPassword: () => text`This password is too long.`,
  repetitivePassword: () => text`This password only repeats itself.`,
  personalPassword: () =>
    text`This password is too close to your user name or to the name of this site.`,
  commonPassword: () => text`This password is one of those that are tried first.`,
} as const satisfies Readonly<Record<string, Sentence>>;

/** A sentence with its values as `{0}`, and what matches it in English. */
function patternOf(sentence: Sentence) {
  const holes = Array.from({ length: sentence.length }, (_, index) => `{${index}}`);
  const pattern = String(sentence(...holes))
    .replaceAll(/[.*+?^$|()[\]\\]/g, '\\$&')
    .replaceAll(/\{(\d+)\}/g, (_, index) =>
      Number(index) === holes.length - 1 ? '(.+)' : '(\\S+(?: seconds?)?)',
    );
  return { sentence, template: sentence(...holes), pattern: new RegExp(`^${pattern}$`) };
}

const { seconds, ...wholeSentences } = sentences;
const known: readonly { readonly sentence: Sentence; readonly pattern: RegExp }[] = [
  ...Object.values<Sentence>(wholeSentences).map(patternOf),
  { sentence: seconds, pattern: /^(\d+(?:\.\d+)?) seconds?$/ },
];
const knownSteps = Object.values<Sentence>(startSteps).map(patternOf);

/** The text that reads so in English, where it is one of the hub's; else the string itself. */
export function translated(english: string): Phrase {
  for (const { sentence, pattern } of known) {
    const match = pattern.exec(english);
    if (match !== null) return sentence(...match.slice(1).map(translated));
  }
  return english;
}

/**
 * The steps of a start for a script: the source of an expression that matches one in English, and how it reads in a
 * language, where `{0}` is the first group. Nothing for English.
 */
export function startStepsIn(language: Language): readonly (readonly [string, string])[] {
  return knownSteps
    .map(({ template, pattern }) => [pattern.source, template.in(language), template] as const)
    .filter(([, shown, template]) => shown !== String(template))
    .map(([source, shown]) => [source, shown]);
}
