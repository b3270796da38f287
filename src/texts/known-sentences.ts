/**
 * Sentences that several parts of the hub say and that reach its pages as plain English: they are kept in the database,
 * come from another process or are strings of the plugin interface. A sentence of one place is `inEnglish` there.
 */
import { message, type Text, type TextValue, text } from './text.ts';

type Sentence = (...values: TextValue[]) => Text;

/** Steps of a start. */
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
  ) =>
    message(
      'Pulling the image {image}: {done} of {layers, plural, one {# layer} other {# layers}}, {current, number} of {total, number} MB.',
      { image, done, layers, current, total },
    ),
  pullingLayers: (image: TextValue, done: TextValue, layers: TextValue) =>
    message(
      'Pulling the image {image}: {done} of {layers, plural, one {# layer} other {# layers}}.',
      { image, done, layers },
    ),
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

  // A length of time within another sentence.
  seconds: (seconds: TextValue) =>
    message('{seconds, plural, one {# second} other {# seconds}}', { seconds }),

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
  addressTaken: (stranger: TextValue) =>
    text`Another program has the address of the server: ${stranger}.`,
  isAlready: (state: TextValue) =>
    message(
      '{state, select, running {The server is running.} starting {The server is starting.} other {The server is stopping.}}',
      { state },
    ),
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
  outOfMemoryAtUnknown: () => text`out of memory`,
  podGone: () => text`its pod is gone`,
  podDeleted: () => text`its pod was deleted`,
  containerRemoved: () => text`its container was removed`,

  // Why a service is not ready.
  exitedLeavingProcesses: (code: TextValue, seconds: TextValue, processes: TextValue) =>
    message(
      'exited with code {code} after {seconds, number} s; what it left running in the background ({processes}) was ended: a service must stay in the foreground',
      { code, seconds, processes },
    ),
  endedLeavingProcesses: (signal: TextValue, seconds: TextValue, processes: TextValue) =>
    message(
      'was ended by {signal} after {seconds, number} s; what it left running in the background ({processes}) was ended: a service must stay in the foreground',
      { signal, seconds, processes },
    ),
  exited: (code: TextValue, seconds: TextValue) =>
    message('exited with code {code} after {seconds, number} s', { code, seconds }),
  endedBySignalAfter: (signal: TextValue, seconds: TextValue) =>
    message('was ended by {signal} after {seconds, number} s', { signal, seconds }),
  notRunAnywhere: () => text`no instance of the hub runs it`,
  restarting: () => text`it is restarting`,
  nothingListens: (url: TextValue) => text`nothing listens on ${url}`,
  answersWithStatus: (url: TextValue, status: TextValue) =>
    text`${url} answers with status ${status}`,
  slowAnswer: (url: TextValue, seconds: TextValue) =>
    message('{url} does not answer within {seconds, number} s', { url, seconds }),

  // Roles that come with the hub.
  userRole: () => text`What every user may do.`,
  adminRole: () => text`What administrators may do.`,
  serverRole: () => text`What the token of a user's server allows the server itself.`,
  tokenRole: () => text`What a new access token allows when nothing else is asked for.`,

  // What the plugin `password` finds wrong with a password.
  shortPassword: (characters: TextValue) =>
    message(
      'A password needs at least {characters, plural, one {# character} other {# characters}}.',
      { characters },
    ),
  longPassword: () => text`This password is too long.`,
  repetitivePassword: () => text`This password only repeats itself.`,
  personalPassword: () =>
    text`This password is too close to your user name or to the name of this site.`,
  commonPassword: () => text`This password is one of those that are tried first.`,
} as const satisfies Readonly<Record<string, Sentence>>;

/** The reason of a server that used more memory than it may; undefined where the limit is not known. */
export function outOfMemory(limitBytes: number | undefined): string {
  if (limitBytes === undefined) return String(sentences.outOfMemoryAtUnknown());
  const mebibytes = Math.round((limitBytes / 1024 ** 2) * 10) / 10;
  return String(sentences.outOfMemory(`${mebibytes} MiB`));
}
