import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { geteuid } from 'node:process';
import { forEachPid } from '../../platform/process-table/process-table.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import {
  descriptorsOf,
  findDescriptor,
  type HeldDescriptor,
  isOnThisMachine,
  isStillHeld,
  listenersFor,
  type PortListener,
  socketLink,
} from './port-listener.ts';
import { livingMembers, type ProcessGroup } from './process-group.ts';
import { directView, type ProcessView } from './process-view.ts';

/**
 * Says which other program takes the connections to a URL of this machine, in a sentence such as "pid 812
 * (nginx) holds the port 8080"; undefined when that is the group itself, when no program listens, and where
 * the system does not tell. Without a group every program is another one.
 */
export type FindForeignProcess = (
  url: string,
  group: ProcessGroup | undefined,
  seen?: Seen,
) => Promise<Text | undefined>;

/** What was seen of an address before its holder is looked for. */
export interface Seen {
  /** Whether a program answered there just now. One that has gone since was not the group: it would still listen. */
  readonly isAnswered: boolean;
  /**
   * Whether the last answer is good enough while the program holds every socket open by which it had the
   * address then: no other one can have it meanwhile. For those who ask before each connection.
   */
  readonly mayBeOld?: boolean;
}

const maxCommandLength = 40;

/** Programs of root that listen on behalf of a container. */
const portForwarders = /^(?:docker-proxy|rootlessport|rootlesskit|conmon|pasta|passt|slirp4netns)/;

/**
 * Creates the check for one program. What it has found once costs no more than reading the table of
 * sockets. The program that started it may hold its port for it; another program must not, of
 * whatever account.
 */
export function createFindForeignProcess({
  view = directView,
  accounts = () => [],
  trustsAccounts = false,
}: {
  readonly view?: ProcessView;
  /** Accounts to trust where the system does not let the hub see what a program of the group holds. */
  readonly accounts?: () => readonly (number | undefined)[];
  /** Whether to trust them in any case: the program is known to have another one listen for it. */
  readonly trustsAccounts?: boolean;
} = {}): FindForeignProcess {
  const own = new Map<string, HeldDescriptor>();
  let lastHeld: { readonly url: string; readonly by: readonly HeldDescriptor[] } | undefined;
  let last: { readonly socketId: string; readonly sentence: Text } | undefined;

  return async (url, group, { isAnswered, mayBeOld } = { isAnswered: false }) => {
    if (mayBeOld && lastHeld?.url === url && lastHeld.by.every(isStillHeld)) return undefined;
    lastHeld = undefined;
    const listeners = await listenersFor(url, view.listenersOn);
    if (isAnswered && !trustsAccounts && listeners?.length === 0 && isOnThisMachine(url)) {
      return text`the program that answered at ${url} has gone`;
    }
    if (listeners === undefined || listeners.length === 0) return undefined;
    const isAllOwn = () => {
      const by = listeners.flatMap(({ socketId }) => own.get(socketId) ?? []);
      if (by.length < listeners.length) return false;
      lastHeld = { url, by };
      return true;
    };
    if (isAllOwn()) return undefined;
    const unknown = listeners.filter(({ socketId }) => !own.has(socketId));
    const isHeldBy = (pids: readonly number[]) => {
      for (const listener of unknown) {
        const descriptor = findDescriptor(pids, listener);
        if (descriptor !== undefined) own.set(listener.socketId, descriptor);
      }
      return isAllOwn();
    };
    let members: readonly number[] = [];
    if (group !== undefined) {
      if (group.groupId !== undefined && isHeldBy([group.groupId])) return undefined;
      members = await livingMembers(group, view);
      if (isHeldBy(members)) return undefined;
    }
    const isHidden = members.some((pid) => descriptorsOf(pid) === undefined);
    const trusted = trustsAccounts || isHidden ? accounts() : [];
    for (const listener of unknown) {
      if (own.has(listener.socketId) || trusted.includes(listener.userId)) continue;
      const holder = await findHolder(listener);
      const isForwarder = listener.userId === 0 && portForwarders.test(holder?.command ?? '');
      if (isForwarder) continue;
      if (last?.socketId !== listener.socketId) {
        last = { socketId: listener.socketId, sentence: describe(listener, holder) };
      }
      return last.sentence;
    }
    return undefined;
  };
}

interface Holder {
  readonly pid: number;
  readonly command: string;
}

function describe({ userId, port }: PortListener, holder: Holder | undefined): Text {
  if (holder !== undefined)
    return text`pid ${String(holder.pid)} (${holder.command}) holds the port ${String(port)}`;
  // Only root sees what programs of other accounts hold.
  return text`a program of user id ${String(userId)} holds the port ${String(port)}`;
}

async function findHolder({ socketId, userId }: PortListener): Promise<Holder | undefined> {
  const me = geteuid?.();
  if (me !== 0 && me !== userId) return undefined;
  let found: number | undefined;
  await forEachPid((pid) => {
    if (found === undefined && descriptorsOf(pid)?.includes(socketLink(socketId)) === true)
      found = pid;
  });
  return found === undefined ? undefined : { pid: found, command: commandOf(found) };
}

/** The name of the program it was started as; a long or odd one is cut for the message it goes into. */
function commandOf(pid: number): string {
  try {
    const [first = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    const name = basename(first) || readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
    return name.replaceAll(/\P{ASCII}|[^ -~]/gu, '?').slice(0, maxCommandLength);
  } catch {
    return 'ended';
  }
}
