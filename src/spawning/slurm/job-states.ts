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
const running = new Set([
  'RUNNING',
  'CONFIGURING',
  'COMPLETING',
  'RESIZING',
  'SIGNALING',
  'STAGE_OUT',
  'STOPPED',
  'SUSPENDED',
]);

/** Tells from the state alone; one that this program does not know counts as ended. */
export function phaseOf({ state }: Pick<Job, 'state'>): JobPhase {
  if (waiting.has(state)) return 'waiting';
  return running.has(state) ? 'running' : 'ended';
}

/** Reasons for which a job waits until its owner or the operator does something. */
const blocked: Readonly<Record<string, string>> = {
  AssocMaxJobsLimit: 'as many jobs run for this account as it may have',
  AssocGrpCpuLimit: 'the account uses as many cores as it may',
  AssocGrpMemLimit: 'the account uses as much memory as it may',
  AssocGrpGRES: 'the account uses as many GPUs as it may',
  AssociationJobLimit: 'as many jobs run for this account as it may have',
  BadConstraints: 'no node has what is asked for',
  InvalidAccount: 'the account does not exist',
  InvalidQOS: 'the quality of service does not exist',
  JobHeldAdmin: 'an operator of the cluster holds it back',
  JobHeldUser: 'its owner holds it back',
  JobLaunchFailure: 'the node could not begin it; the folder of its output may be missing there',
  Licenses: 'it waits for a licence',
  MaxMemPerLimit: 'it asks for more memory than the partition allows',
  NodeDown: 'a node that it needs is down',
  PartitionDown: 'the partition is down',
  PartitionInactive: 'the partition is not active',
  PartitionNodeLimit: 'it asks for more nodes than the partition has',
  PartitionConfig: 'it asks for more than the partition offers',
  PartitionTimeLimit: 'it asks for more time than the partition allows',
  Priority: 'others come first',
  QOSMaxJobsPerUserLimit: 'as many jobs run for this user as may',
  ReqNodeNotAvail: 'a node that it needs is not available',
  Reservation: 'it waits for a reservation',
  Resources: 'it waits for free resources',
};

/** Why a job waits, for its user: in words where they are known, and as Slurm puts it. */
export function describeReason(reason: string): string {
  const words = blocked[reason];
  return words === undefined ? reason : `${words} (${reason})`;
}

/** Why a job ended, in words for its user that begin small and have no full stop. */
export function describeEnd({ state, reason, timeLimit, node }: Job): string {
  switch (state) {
    case 'TIMEOUT':
    case 'DEADLINE':
      return `the job reached its time limit of ${describeDuration(timeLimit)}`;
    case 'OUT_OF_MEMORY':
      return 'the job needed more memory than it had asked for';
    case 'CANCELLED':
      return 'the job was cancelled in Slurm';
    case 'NODE_FAIL':
    case 'BOOT_FAIL':
      return `the node ${node ?? ''} of the job failed`.replace('  ', ' ');
    case 'PREEMPTED':
      return 'the job had to make room for another one';
    case 'COMPLETED':
      return 'its program ended by itself';
    default:
      return reason === 'None' || reason === 'NonZeroExitCode' || reason === ''
        ? 'its program ended with an error'
        : `Slurm ended the job: ${describeReason(reason)}`;
  }
}

/** `1-02:30:00` as `1 day 2 hours 30 minutes`. */
export function describeDuration(text: string): string {
  const match = /^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)$/.exec(text);
  if (match === null) return text;
  const names = ['day', 'hour', 'minute', 'second'];
  const parts = match.slice(1).flatMap((part, index) => {
    const value = Number(part ?? 0);
    return value === 0 ? [] : [`${value} ${names[index]}${value === 1 ? '' : 's'}`];
  });
  return parts.length === 0 ? text : parts.join(' ');
}

/** Where a job stands in the queue of its partition, those that come first before the others. */
export function describeWait(job: Job, queue: readonly string[]): string {
  const place = queue.indexOf(job.id) + 1;
  const where = place === 0 ? '' : `, ${ordinal(place)} of ${queue.length}`;
  const start =
    job.startTime === undefined
      ? ''
      : ` Slurm expects it to start at ${job.startTime.replace('T', ' ')}.`;
  const why = job.reason === 'None' ? '' : `: ${describeReason(job.reason)}`;
  return `Waiting in the queue of the partition ${job.partition}${where}${why}.${start}`;
}

function ordinal(place: number): string {
  const endings = { one: 'st', two: 'nd', few: 'rd', other: 'th', zero: 'th', many: 'th' } as const;
  return `${place}${endings[new Intl.PluralRules('en', { type: 'ordinal' }).select(place)]}`;
}
