import { HubError } from '../../errors.ts';
import { serviceTitle } from '../../protocol/service-title.ts';
import type { Route } from '../../proxy/route.ts';
import type { ServiceRegistry } from '../../services/service-registry.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { renderHtml } from '../html.ts';
import { serverTitle } from '../servers/server-summary.ts';
import { serviceUnavailablePage } from './service-unavailable-page.ts';

/** Renders what a visitor sees while a service or server is not ready. */
export function createNotReadyRenderer(
  layout: Omit<LayoutProps, 'now'>,
  { statusOf, find }: Pick<ServiceRegistry, 'statusOf' | 'find'>,
): (route: Route, url: string) => { html: string; error: HubError } {
  const retryAfterSeconds = 3;
  return ({ owner }, url) => {
    const name = titleOf(owner, find);
    const status = owner.kind === 'service' ? statusOf(owner.name) : undefined;
    const page = serviceUnavailablePage({
      layout: { ...layout, now: new Date() },
      serviceName: name,
      isCrashLooping: status?.state === 'crash_looping',
      retryAfterSeconds,
      url,
    });
    const error = new HubError('unavailable', `${name} is not ready.`, {
      hint: 'Try again in a few seconds.',
      retryAfterSeconds,
    });
    return { html: renderHtml(page), error };
  };
}

/** What visitors call the upstream of a route. */
function titleOf(owner: Route['owner'], find: ServiceRegistry['find']): string {
  switch (owner.kind) {
    case 'service':
      return serviceTitle(find(owner.name) ?? owner);
    case 'server':
      return serverTitle({ userName: owner.userName, name: owner.serverName }, '');
    case 'extra':
      return 'This';
  }
}
