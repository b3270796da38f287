import { inSeconds } from '../../platform/texts/seconds.ts';
import {
  joined,
  message,
  type Phrase,
  type Text,
  type TextValue,
  text,
} from '../../platform/texts/text.ts';
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
const blocked: Readonly<Record<string, Text>> = {
  AssocMaxJobsLimit: text`as many jobs run for this account as it may have`,
  AssocGrpCpuLimit: text`the account uses as many cores as it may`,
  AssocGrpMemLimit: text`the account uses as much memory as it may`,
  AssocGrpGRES: text`the account uses as many GPUs as it may`,
  AssociationJobLimit: text`as many jobs run for this account as it may have`,
  BadConstraints: text`no node has what is asked for`,
  InvalidAccount: text`the account does not exist`,
  InvalidQOS: text`the quality of service does not exist`,
  JobHeldAdmin: text`an operator of the cluster holds it back`,
  JobHeldUser: text`its owner holds it back`,
  JobLaunchFailure: text`the node could not begin it; the folder of its output may be missing there`,
  Licenses: text`it waits for a licence`,
  MaxMemPerLimit: text`it asks for more memory than the partition allows`,
  NodeDown: text`a node that it needs is down`,
  PartitionDown: text`the partition is down`,
  PartitionInactive: text`the partition is not active`,
  PartitionNodeLimit: text`it asks for more nodes than the partition has`,
  PartitionConfig: text`it asks for more than the partition offers`,
  PartitionTimeLimit: text`it asks for more time than the partition allows`,
  Priority: text`others come first`,
  QOSMaxJobsPerUserLimit: text`as many jobs run for this user as may`,
  ReqNodeNotAvail: text`a node that it needs is not available`,
  Reservation: text`it waits for a reservation`,
  Resources: text`it waits for free resources`,
};

/** Why a job waits, for its user: in words where they are known, and as Slurm puts it. */
export function describeReason(reason: string): Phrase {
  const words = blocked[reason];
  return words === undefined ? reason : joined([words, ' (', reason, ')'], '');
}

/** Why a job ended, in words for its user that begin small and have no full stop. */
export function describeEnd(job: Job | undefined): Text {
  if (job === undefined) return text`Slurm does not know its job any more`;
  const { state, reason, timeLimit, node } = job;
  switch (state) {
    case 'TIMEOUT':
    case 'DEADLINE':
      return text`the job reached its time limit of ${describeDuration(timeLimit)}`;
    case 'OUT_OF_MEMORY':
      return text`the job needed more memory than it had asked for`;
    case 'CANCELLED':
      return text`the job was cancelled in Slurm`;
    case 'NODE_FAIL':
    case 'BOOT_FAIL':
      return node === undefined
        ? text`the node of the job failed`
        : text`the node ${node} of the job failed`;
    case 'PREEMPTED':
      return text`the job had to make room for another one`;
    case 'COMPLETED':
      return text`its program ended by itself`;
    default:
      return reason === 'None' || reason === 'NonZeroExitCode' || reason === ''
        ? text`its program ended with an error`
        : text`Slurm ended the job: ${describeReason(reason)}`;
  }
}

const units = [
  (days: number) => message('{days, plural, one {# day} other {# days}}', { days }),
  (hours: number) => message('{hours, plural, one {# hour} other {# hours}}', { hours }),
  (minutes: number) => message('{minutes, plural, one {# minute} other {# minutes}}', { minutes }),
  (seconds: number) => inSeconds(seconds),
];

/** `1-02:30:00` as `1 day 2 hours 30 minutes`. */
export function describeDuration(limit: string): Phrase {
  const match = /^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)$/.exec(limit);
  if (match === null) return limit;
  const parts = match.slice(1).flatMap((part, index) => {
    const value = Number(part ?? 0);
    return value === 0 ? [] : [units[index]?.(value) ?? ''];
  });
  return parts.length === 0 ? limit : joined(parts);
}

/** Where a job stands in the queue of its partition, those that come first before the others. */
export function describeWait(job: Job, queue: readonly string[]): Text {
  const { partition, startTime } = job;
  const place = queue.indexOf(job.id) + 1;
  const why = job.reason === 'None' ? undefined : describeReason(job.reason);
  const wait =
    place === 0
      ? waitIn(partition, why)
      : waitAt({ partition, place, jobs: queue.length, ...(why !== undefined && { why }) });
  if (startTime === undefined) return wait;
  return joined([wait, text`Slurm expects it to start at ${startTime.replace('T', ' ')}.`]);
}

function waitIn(partition: string, why: Phrase | undefined): Text {
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
