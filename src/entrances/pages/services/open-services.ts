import type { OpenService } from '../../../operations/home-page.ts';
import type { Language } from '../../../platform/texts/language.ts';
import type { Service } from '../../../workloads/services/service.ts';
import type { PageContext } from '../page-context.ts';
import { inShownOrder, type PlacedServiceLink, toServiceLink } from './service-list.ts';

/** The services that a person may open as links, in the order in which pages show them. */
export function linksTo(
  services: readonly OpenService[],
  pages: Pick<PageContext, 'urlOf' | 'ownPathOf'>,
  language: Language,
): readonly PlacedServiceLink[] {
  const urlOf = ({ origin, prefix }: Service) =>
    origin === undefined ? pages.urlOf(prefix) : origin + prefix;
  const { ownPathOf } = pages;
  return inShownOrder(
    services.map((each) => toServiceLink(each, { url: urlOf(each.service), ownPathOf, language })),
  );
}
