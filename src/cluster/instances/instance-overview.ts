import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { HubError } from '../../platform/errors.ts';
import { type Phrase, text } from '../../platform/texts/text.ts';
import type { ChannelCaller } from './channel-caller.ts';
import type { Instance } from './instance.ts';
import {
  type InstanceDirectory,
  type InstancePlace,
  isUp,
  placesOf,
} from './instance-directory.ts';
import type {
  GatewayIdentity,
  InstanceFigures,
  InstanceReport,
  ReportedGateway,
} from './instance-figures.ts';
import type { InstanceStore, OwnedThings } from './instance-store.ts';

/** An instance as administrators see it. */
export interface InstanceView extends InstancePlace {
  readonly owned: OwnedThings;
  /** Undefined for one that does not answer. */
  readonly figures: InstanceFigures | undefined;
  /** Gateway processes that follow it, by name. */
  readonly gateways: readonly GatewayView[];
  /** Why it does not answer. */
  readonly problem: Phrase | undefined;
}

/** A gateway process as administrators see it. */
export interface GatewayView extends GatewayIdentity {
  /** What it told of itself lately, to whichever instance. */
  readonly reported: ReportedGateway | undefined;
}

/** What all the instances are, own and do. */
export interface InstanceOverview {
  list(): Promise<readonly InstanceView[]>;
}

/** What came of asking an instance how it is. */
interface Answer {
  readonly report: InstanceReport | undefined;
  readonly problem: Phrase | undefined;
}

/** The operation by which an instance tells its figures. */
export const figuresOperation = 'figures';
const figuresTimeoutMs = 2_000;
const askedAtOnce = 16;

export function createInstanceOverview(deps: {
  readonly instance: Pick<Instance, 'id' | 'machineId'>;
  readonly directory: Pick<InstanceDirectory, 'refresh' | 'addressOf'>;
  readonly instanceStore: Pick<InstanceStore, 'listOwned'>;
  readonly caller: Pick<ChannelCaller, 'call'>;
  readonly report: () => InstanceReport;
}): InstanceOverview {
  const { instance: here, directory, instanceStore: store, caller } = deps;

  async function ask(instance: Instance): Promise<Answer> {
    if (instance.id === here.id) return { report: deps.report(), problem: undefined };
    const address = directory.addressOf(instance.id) ?? { ...instance, url: undefined };
    try {
      const options = { timeoutMs: figuresTimeoutMs };
      const response = await caller.call(address, figuresOperation, undefined, options);
      return { report: response as InstanceReport, problem: undefined };
    } catch (error) {
      return { report: undefined, problem: problemOf(error) };
    }
  }

  return {
    async list() {
      const [instances, owned] = await Promise.all([directory.refresh(), store.listOwned()]);
      const response = new Map<string, Answer>();
      const asked = instances.filter((instance) => isUp(instance, here));
      const limit = createLimiter(askedAtOnce);
      await Promise.all(
        asked.map(async (instance) => {
          response.set(instance.id, await limit(() => ask(instance)));
        }),
      );
      const reported = newestOfEach([...response.values()]);
      return placesOf(instances, here).map(({ instance, ...place }) => ({
        ...place,
        instance,
        owned: owned.get(instance.id) ?? nothing,
        figures: response.get(instance.id)?.report,
        gateways: (response.get(instance.id)?.report?.gateways?.following ?? [])
          .map((gateway) => ({ ...gateway, reported: reported.get(gateway.name) }))
          .toSorted((left, right) => (left.name < right.name ? -1 : 1)),
        problem: response.get(instance.id)?.problem,
      }));
    },
  };
}

/** The latest word of each gateway, by name: behind a balancer, each hub hears a part of what they tell. */
function newestOfEach(answers: readonly Answer[]): ReadonlyMap<string, ReportedGateway> {
  const newest = new Map<string, ReportedGateway>();
  for (const { report } of answers) {
    for (const each of report?.gateways?.reported ?? []) {
      const known = newest.get(each.name);
      if (known === undefined || known.requests <= each.requests) newest.set(each.name, each);
    }
  }
  return newest;
}

export const nothing: OwnedThings = { servers: 0, services: [] };

function problemOf(error: unknown): Phrase {
  return error instanceof HubError ? error.shown.message : text`It does not answer.`;
}
