import { actAsHub } from '../audit/actor.ts';
import type { AuditEvent, AuditTarget } from '../audit/audit-event.ts';
import type { AuditRow } from './tables.ts';

/** Records what anyone can cause as often as they like, so that it fills no disk. */
export interface BoundedRecords {
  /** Takes a action of the current actor. Of those beyond the limit only the number is recorded. */
  add(auditEvent: AuditEvent): void;
  /** Writes everything taken so far, with the numbers of those left out. */
  flush(): Promise<void>;
}

const windowMs = 600_000;
/** Of one actor and action in each window. */
const maxOfOne = 10;
/** Of all actors of one kind together in each window: people who did not log in hide no one who did. */
const maxInWindow = 200;
/** Actors and actions of one kind that are told apart. */
const maxKinds = 1_000;
const maxOmissionRows = 20;
const writeDelayMs = 500;

/** A number of actions alike, in one window. */
interface Tally {
  readonly row: AuditRow;
  recorded: number;
  omitted: number;
}

/** What actors of one kind did in one window. */
interface KindTally {
  readonly tallies: Map<string, Tally>;
  recorded: number;
}

export function createBoundedRecords({
  rowOf,
  write,
  now = () => performance.now(),
}: {
  readonly rowOf: (auditEvent: AuditEvent) => AuditRow;
  /** Never throws. */
  readonly write: (rows: readonly AuditRow[]) => Promise<void>;
  readonly now?: () => number;
}): BoundedRecords {
  const kinds = new Map<AuditRow['actor_kind'], KindTally>();
  let omittedOfOthers = 0;
  let windowEndsMs = 0;
  let waiting: AuditRow[] = [];
  let timer: NodeJS.Timeout | undefined;
  let windowTimer: NodeJS.Timeout | undefined;

  function schedule(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      void writeWaiting();
    }, writeDelayMs).unref();
  }

  async function writeWaiting(): Promise<void> {
    const rows = waiting;
    waiting = [];
    if (rows.length > 0) await write(rows);
  }

  /** Ends the window: what was left out in it is told in few rows. */
  function endWindow(): void {
    clearTimeout(windowTimer);
    windowTimer = undefined;
    const all = [...kinds.values()].flatMap(({ tallies }) => [...tallies.values()]);
    const left = all.filter(({ omitted }) => omitted > 0);
    left.sort((one, other) => other.omitted - one.omitted);
    const reported = left.slice(0, maxOmissionRows);
    const rest = left.slice(reported.length).reduce((sum, { omitted }) => sum + omitted, 0);
    for (const { row, omitted } of reported) waiting.push(omissionRow(omitted, row));
    if (rest + omittedOfOthers > 0) waiting.push(omissionRow(rest + omittedOfOthers));
    if (waiting.length > 0) schedule();
    kinds.clear();
    omittedOfOthers = 0;
  }

  function omissionRow(count: number, like?: AuditRow): AuditRow {
    const { action, address = null, actor_kind: kind, actor_name: name = null } = like ?? {};
    const target: AuditTarget | undefined =
      (kind === 'user' || kind === 'service') && name !== null ? { kind, name } : undefined;
    return actAsHub(() =>
      rowOf({
        action: 'audit.omit',
        ...(target !== undefined && { target }),
        detail: {
          count,
          ...(action !== undefined && { action }),
          ...(address !== null && { address }),
        },
      }),
    );
  }

  return {
    add(auditEvent) {
      const at = now();
      if (at >= windowEndsMs) {
        endWindow();
        windowEndsMs = at + windowMs;
      }
      const row = rowOf(auditEvent);
      const kind = kinds.get(row.actor_kind) ?? { tallies: new Map(), recorded: 0 };
      kinds.set(row.actor_kind, kind);
      const { tallies } = kind;
      const key = [row.actor_name, row.address, row.action].join('\n');
      let tally = tallies.get(key);
      if (tally === undefined && tallies.size < maxKinds) {
        tally = { row, recorded: 0, omitted: 0 };
        tallies.set(key, tally);
      }
      if (tally !== undefined && tally.recorded < maxOfOne && kind.recorded < maxInWindow) {
        tally.recorded += 1;
        kind.recorded += 1;
        waiting.push(row);
        schedule();
        return;
      }
      if (tally === undefined) omittedOfOthers += 1;
      else tally.omitted += 1;
      windowTimer ??= setTimeout(endWindow, windowEndsMs - at).unref();
    },

    async flush() {
      clearTimeout(timer);
      timer = undefined;
      endWindow();
      clearTimeout(timer);
      timer = undefined;
      await writeWaiting();
    },
  };
}
