import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { withinTime } from '../../platform/concurrency/time-limit.ts';
import {
  addLoads,
  type LoadHistories,
  type LoadSeries,
  type LoadSpan,
  loadFigures,
} from '../../platform/metrics/load-history.ts';
import type { ChannelCaller } from './channel-caller.ts';
import type { Instance } from './instance.ts';
import type { InstanceDirectory } from './instance-directory.ts';
import { hasEnded } from './instance-lease.ts';

/** How busy something was, as all instances together tell. */
export interface LoadReport {
  /** Undefined where none has a past of it. */
  readonly series: LoadSeries | undefined;
  /** Names of instances that did not answer in time: what they know is missing. */
  readonly silent: readonly string[];
}

/** How busy each instance was. */
export interface InstanceLoads {
  /** By the id of the instance. */
  readonly byInstance: ReadonlyMap<string, LoadSeries>;
  readonly together: LoadReport;
}

/** Reads how busy servers, services and instances were. */
export interface LoadReader {
  /** Each instance counts the requests that pass through it, and measures what it runs. Never throws. */
  read(key: string, span: LoadSpan): Promise<LoadReport>;
  /** As `read`, apart: for a key that each instance has of its own. */
  readEach(key: string, span: LoadSpan): Promise<InstanceLoads>;
  /** What this instance alone knows of the last hour: cheap enough for each row of a list. */
  readHere(key: string): LoadSeries | undefined;
}

/** The operation by which an instance tells what it knows. */
export const loadsOperation = 'loads';

/** A page waits for no more than this. */
const answerMs = 1_500;
const askedAtOnce = 16;

interface Question {
  readonly key: string;
  readonly span: LoadSpan;
}

/** Answers another instance; the question is signed by that. */
export function answerLoads(histories: Pick<LoadHistories, 'read'>, question: unknown) {
  const { key, span } = question as Question;
  return histories.read(key, span) ?? null;
}

export function createLoadReader(deps: {
  readonly instance: Pick<Instance, 'id' | 'machineId'>;
  /** Whether other instances may use the database. */
  readonly isShared: boolean;
  readonly directory: Pick<InstanceDirectory, 'list' | 'addressOf'>;
  readonly caller: Pick<ChannelCaller, 'call'>;
  readonly histories: Pick<LoadHistories, 'read'>;
  readonly timeoutMs?: number;
}): LoadReader {
  const { instance: here, directory, caller, histories, timeoutMs = answerMs } = deps;
  const limit = createLimiter(askedAtOnce);

  function others(): readonly Instance[] {
    if (!deps.isShared) return [];
    return directory
      .list()
      .filter((each) => each.isLive && each.id !== here.id && !hasEnded(each, here));
  }

  /** Rejects when there is no answer in time. */
  async function ask({ id }: Instance, question: Question): Promise<LoadSeries | undefined> {
    const address = directory.addressOf(id);
    if (address === undefined) throw new Error('it has just gone');
    const answer = limit(() => caller.call(address, loadsOperation, question, { timeoutMs }));
    const late = (): never => {
      throw new Error('it is late');
    };
    return asSeries(await withinTime(answer, timeoutMs, late));
  }

  async function readEach(key: string, span: LoadSpan): Promise<InstanceLoads> {
    const own = histories.read(key, span);
    const byInstance = new Map<string, LoadSeries>(own === undefined ? [] : [[here.id, own]]);
    const silent: string[] = [];
    await Promise.all(
      others().map(async (instance) => {
        try {
          const reported = await ask(instance, { key, span });
          if (reported !== undefined) byInstance.set(instance.id, reported);
        } catch {
          silent.push(instance.name);
        }
      }),
    );
    const series = addLoads([...byInstance.values()]);
    return { byInstance, together: { series, silent: silent.sort() } };
  }

  return {
    readEach,
    read: async (key, span) => (await readEach(key, span)).together,
    readHere: (key) => histories.read(key, 'hour'),
  };
}

/** What another version tells may have fewer figures. */
function asSeries(reported: unknown): LoadSeries | undefined {
  const { stepSeconds, figures } = (reported ?? {}) as Partial<LoadSeries>;
  if (stepSeconds === undefined || figures === undefined) return undefined;
  const isWhole = loadFigures.every((figure) => Array.isArray(figures[figure]));
  return isWhole ? { stepSeconds, figures } : undefined;
}
