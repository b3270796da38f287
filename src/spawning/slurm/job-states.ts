import { sentences } from '../../texts/known-sentences.ts';
import { inEnglish, message, type Text, type TextValue, text } from '../../texts/text.ts';
/** What Slurm says of a job, as `squeue` prints it. */
export interface Job {
  readonly id: string;
  /** Long form, such as `PENDING`, `RUNNING`, `OUT_OF_MEMORY` (squeue(1), JOB STATE CODES). */
  readonly state: string;
  /** Why it is in that state, such as `Resources` or `Priority` (squeue(1), JOB REASON CODES). */
  readonly reason: string;
  /** Name of the node on which the batch script runs; undefined while there is none. */
  readonly node: string | undefined;
  readonly partition: string;
  /** As Slurm writes it, `1-12:00:00`. */
  readonly timeLimit: string;
  /** When it began or is expected to, as Slurm writes it; undefined where Slurm does not know. */
  readonly startTime: string | undefined;
}

/** Where a job stands. */
export type JobPhase = 'waiting' | 'running' | 'ended';

const waiting = new Set([
  'PENDING',
  'REQUEUED',
  'REQUEUE_HOLD',
  'REQUEUE_FED',
  'SPECIAL_EXIT',
  'RESV_DEL_HOLD',
]);
const ended = new Set([
  'BOOT_FAIL',
  'CANCELLED',
  'COMPLETED',
  'DEADLINE',
  'FAILED',
  'NODE_FAIL',
  'OUT_OF_MEMORY',
  'PREEMPTED',
  'REVOKED',
  'TIMEOUT',
]);

/**
 * Tells from the state alone. A job in a state that this program does not know goes on: Slurm forgets one that
 * has ended some minutes later, while one taken for ended would run beside the next.
 */
export function phaseOf({ state }: Pick<Job, 'state'>): JobPhase {
  if (waiting.has(state)) return 'waiting';
  return ended.has(state) ? 'ended' : 'running';
}

/** Reasons for which a job waits until its owner or the operator does something. */
const blocked: Readonly<Record<string, string>> = {
  AssocMaxJobsLimit: inEnglish`as many jobs run for this account as it may have`,
  AssocGrpCpuLimit: inEnglish`the account uses as many cores as it may`,
  AssocGrpMemLimit: inEnglish`the account uses as much memory as it may`,
  AssocGrpGRES: inEnglish`the account uses as many GPUs as it may`,
  AssociationJobLimit: inEnglish`as many jobs run for this account as it may have`,
  BadConstraints: inEnglish`no node has what is asked for`,
  InvalidAccount: inEnglish`the account does not exist`,
  InvalidQOS: inEnglish`the quality of service does not exist`,
  JobHeldAdmin: inEnglish`an operator of the cluster holds it back`,
  JobHeldUser: inEnglish`its owner holds it back`,
  JobLaunchFailure: inEnglish`the node could not begin it; the folder of its output may be missing there`,
  Licenses: inEnglish`it waits for a licence`,
  MaxMemPerLimit: inEnglish`it asks for more memory than the partition allows`,
  NodeDown: inEnglish`a node that it needs is down`,
  PartitionDown: inEnglish`the partition is down`,
  PartitionInactive: inEnglish`the partition is not active`,
  PartitionNodeLimit: inEnglish`it asks for more nodes than the partition has`,
  PartitionConfig: inEnglish`it asks for more than the partition offers`,
  PartitionTimeLimit: inEnglish`it asks for more time than the partition allows`,
  Priority: inEnglish`others come first`,
  QOSMaxJobsPerUserLimit: inEnglish`as many jobs run for this user as may`,
  ReqNodeNotAvail: inEnglish`a node that it needs is not available`,
  Reservation: inEnglish`it waits for a reservation`,
  Resources: inEnglish`it waits for free resources`,
};

/** Why a job waits, for its user: in words where they are known, and as Slurm puts it. */
export function describeReason(reason: string): string {
  const words = blocked[reason];
  return words === undefined ? reason : `${words} (${reason})`;
}

/** Why a job ended, in words for its user that begin small and have no full stop. */
export function describeEnd(job: Job | undefined): string {
  if (job === undefined) return inEnglish`Slurm does not know its job any more`;
  const { state, reason, timeLimit, node } = job;
  switch (state) {
    case 'TIMEOUT':
    case 'DEADLINE':
      return inEnglish`the job reached its time limit of ${describeDuration(timeLimit)}`;
    case 'OUT_OF_MEMORY':
      return inEnglish`the job needed more memory than it had asked for`;
    case 'CANCELLED':
      return inEnglish`the job was cancelled in Slurm`;
    case 'NODE_FAIL':
    case 'BOOT_FAIL':
      return node === undefined
        ? inEnglish`the node of the job failed`
        : inEnglish`the node ${node} of the job failed`;
    case 'PREEMPTED':
      return inEnglish`the job had to make room for another one`;
    case 'COMPLETED':
      return inEnglish`its program ended by itself`;
    default:
      return reason === 'None' || reason === 'NonZeroExitCode' || reason === ''
        ? inEnglish`its program ended with an error`
        : inEnglish`Slurm ended the job: ${describeReason(reason)}`;
  }
}

const units = [
  (days: number) => message('{days, plural, one {# day} other {# days}}', { days }),
  (hours: number) => message('{hours, plural, one {# hour} other {# hours}}', { hours }),
  (minutes: number) => message('{minutes, plural, one {# minute} other {# minutes}}', { minutes }),
  (seconds: number) => sentences.seconds(seconds),
];

/** `1-02:30:00` as `1 day 2 hours 30 minutes`. */
export function describeDuration(limit: string): string {
  const match = /^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)$/.exec(limit);
  if (match === null) return limit;
  const parts = match.slice(1).flatMap((part, index) => {
    const value = Number(part ?? 0);
    return value === 0 ? [] : [String(units[index]?.(value))];
  });
  return parts.length === 0 ? limit : parts.join(' ');
}

/** Where a job stands in the queue of its partition, those that come first before the others. */
export function describeWait(job: Job, queue: readonly string[]): string {
  const { partition, startTime } = job;
  const place = queue.indexOf(job.id) + 1;
  const why = job.reason === 'None' ? undefined : describeReason(job.reason);
  const wait = String(
    place === 0
      ? waitIn(partition, why)
      : waitAt({ partition, place, jobs: queue.length, ...(why !== undefined && { why }) }),
  );
  if (startTime === undefined) return wait;
  return `${wait} ${inEnglish`Slurm expects it to start at ${startTime.replace('T', ' ')}.`}`;
}

function waitIn(partition: string, why: string | undefined): Text {
  if (why === undefined) return text`Waiting in the queue of the partition ${partition}.`;
  return text`Waiting in the queue of the partition ${partition}: ${why}.`;
}

function waitAt(values: Readonly<Record<string, TextValue>>): Text {
  if (values['why'] === undefined) {
    return message(
      'Waiting in the queue of the partition {partition}, {place, selectordinal, one {#st} two {#nd} few {#rd} other {#th}} of {jobs, number}.',
      values,
    );
  }
  return message(
    'Waiting in the queue of the partition {partition}, {place, selectordinal, one {#st} two {#nd} few {#rd} other {#th}} of {jobs, number}: {why}.',
    values,
  );
}
