import { checkAccess } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { Caller } from '../../rbac/caller.ts';
import type { Service } from '../../services/service.ts';
import type { ServiceRegistry } from '../../services/service-registry.ts';
import type { Language } from '../../texts/language.ts';
import type { PageContext } from '../page-context.ts';
import { inShownOrder, type PlacedServiceLink, toServiceLink } from './service-list.ts';

/** The services that a caller may open, in the order in which pages show them. */
export type AccessibleServices = (
  caller: Caller,
  language: Language,
) => Promise<readonly PlacedServiceLink[]>;

export function createAccessibleServices(deps: {
  readonly pages: Pick<PageContext, 'urlOf' | 'ownPathOf'>;
  readonly authorizer: Pick<Authorizer, 'membershipFor'>;
  readonly registry: Pick<ServiceRegistry, 'services' | 'statusOf'>;
}): AccessibleServices {
  const { pages, registry } = deps;

  const urlOf = ({ origin, prefix }: Service) =>
    origin === undefined ? pages.urlOf(prefix) : origin + prefix;

  return async ({ scopes }, language) => {
    const membership = await deps.authorizer.membershipFor(scopes);
    const links = registry
      .services()
      .filter(({ url, isBehindProxy }) => url !== undefined || isBehindProxy)
      .filter(({ isDisplayed }) => isDisplayed)
      .filter(({ name }) => {
        const resource = { kind: 'service', name } as const;
        return checkAccess(scopes, 'access:services', resource, membership) === 'granted';
      })
      .map((service) =>
        toServiceLink(service, {
          url: urlOf(service),
          status: registry.statusOf(service.name),
          ownPathOf: pages.ownPathOf,
          language,
        }),
      );
    return inShownOrder(links);
  };
}
