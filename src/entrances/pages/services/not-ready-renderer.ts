import type { IncomingMessage } from 'node:http';
import { HubError } from '../../../platform/errors.ts';
import { serviceTitle } from '../../../platform/protocol/service-title.ts';
import type { Languages } from '../../../platform/texts/languages.ts';
import { exactTime, type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import type { Route } from '../../../traffic/proxy/route.ts';
import type { Service } from '../../../workloads/services/service.ts';
import { serviceText } from '../../../workloads/services/service-info.ts';
import type { ServiceRegistry } from '../../../workloads/services/service-registry.ts';
import type { PlacedStatus } from '../../../workloads/services/service-status.ts';
import type { Announced } from '../announced.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { renderHtml } from '../html.ts';
import { languageOf, readPreferences } from '../preferences.ts';
import { serverTitle } from '../servers/server-summary.ts';
import { serviceUnavailablePage, type Unavailability } from './service-unavailable-page.ts';

/** How long a service may be without an answer before its visitors are told since when. */
const patienceMs = 30_000;

/** Renders what a visitor sees while a service or server is not ready. */
export function createNotReadyRenderer(
  {
    layout,
    languages,
    announced,
  }: {
    readonly layout: Omit<LayoutProps, 'now'>;
    readonly languages: Languages;
    readonly announced: Pick<Announced, 'shown'>;
  },
  { statusOf, find }: Pick<ServiceRegistry, 'statusOf' | 'find'>,
): (
  route: Route,
  req: Pick<IncomingMessage, 'url' | 'headers'>,
) => { html: string; error: HubError } {
  return ({ owner }, { url = '/', headers }) => {
    const now = new Date();
    const name = titleOf(owner, find);
    const isService = owner.kind === 'service';
    const why = reasonOf(isService ? statusOf(owner.name) : undefined, now);
    const retryAfterSeconds = why.kind === 'stopped' || why.kind === 'silent' ? 15 : 3;
    const page = serviceUnavailablePage({
      layout: {
        ...layout,
        now,
        theme: readPreferences(headers.cookie).theme,
        announcements: announced.shown(),
      },
      serviceName: name,
      why,
      contact: isService ? contactOf(find(owner.name)) : undefined,
      retryAfterSeconds,
      url,
    });
    const reported =
      why.kind === 'stopped' ? text`${name} is stopped.` : text`${name} is not ready.`;
    const error = new HubError('unavailable', reported, {
      hint: hintOf(why),
      retryAfterSeconds,
    });
    return { html: renderHtml(page, languageOf(languages, headers)), error };
  };
}

function reasonOf(status: PlacedStatus | undefined, now: Date): Unavailability {
  const { state, since, stopped } = status ?? {};
  if (stopped !== undefined) return { kind: 'stopped', at: stopped.at };
  if (state === 'crash_looping') return { kind: state };
  const isSilent =
    state === 'unhealthy' && since !== undefined && now.getTime() - since.getTime() > patienceMs;
  return isSilent ? { kind: 'silent', since } : { kind: 'starting' };
}

function hintOf(why: Unavailability): Text {
  switch (why.kind) {
    case 'stopped':
      return text`An administrator stopped it.`;
    case 'silent':
      return text`It hasn’t responded since ${exactTime(why.since)}.`;
    case 'starting':
    case 'crash_looping':
      return text`Try again in a few seconds.`;
  }
}

function contactOf(service: Service | undefined): Phrase | undefined {
  return service && serviceText(service, 'contact');
}

/** What visitors call the upstream of a route. */
function titleOf(owner: Route['owner'], find: ServiceRegistry['find']): Phrase {
  switch (owner.kind) {
    case 'service':
      return serviceTitle(find(owner.name) ?? owner);
    case 'server':
      return serverTitle({ userName: owner.userName, name: owner.serverName }, '');
    case 'extra':
      return text`This`;
  }
}
