import type { OpenService } from '../../../operations/home-page.ts';
import type { Language } from '../../../platform/texts/language.ts';
import { type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import {
  readIcon,
  type ServiceIcon,
  serviceInfo,
} from '../../../workloads/services/service-info.ts';
import type { ServiceState } from '../../../workloads/services/service-status.ts';
import { icon, initialsOf } from '../elements/brand.ts';
import { csrfField, hiddenFields } from '../elements/form.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { timeElement } from '../elements/quantity.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { comparePlaces, placeOf, type ServicePlace } from './service-places.ts';

/** A service that the person may open. */
export interface ServiceLink {
  readonly name: string;
  readonly title: string;
  readonly description?: string | undefined;
  /** Under which heading it stands. */
  readonly group?: string | undefined;
  /** The heading under which it stands before the others in place of that. */
  readonly shelf?: Phrase | undefined;
  readonly icon?: ServiceIcon | undefined;
  /** Who looks after it. */
  readonly contact?: string | undefined;
  readonly url: string;
  readonly state: ServiceState;
  /** Since when it is in that state. */
  readonly since?: Date | undefined;
  readonly isFavourite?: boolean | undefined;
  readonly lastUsedAt?: Date | undefined;
}

export function toServiceLink(
  { service, status, isFavourite, lastUsedAt }: OpenService,
  {
    url,
    ownPathOf,
    language,
  }: {
    readonly url: string;
    /** Gives the path of an address of the hub's own origin, from which alone images are shown. */
    readonly ownPathOf: (address: string) => string | undefined;
    readonly language: Language;
  },
): ServiceLink {
  const { icon, ...info } = serviceInfo(service, language);
  return {
    name: service.name,
    ...info,
    icon: readIcon(icon, ownPathOf),
    url,
    state: status?.state ?? 'stopped',
    since: status?.stopped?.at ?? status?.since,
    isFavourite,
    lastUsedAt,
  };
}

const words = {
  ready: ['good', text`Ready`],
  starting: ['warn', text`Starting`],
  restarting: ['warn', text`Restarting`],
  stopping: ['warn', text`Stopping`],
  unhealthy: ['bad', text`Not answering`],
  crash_looping: ['bad', text`Keeps failing`],
  stopped: ['', text`Stopped`],
} as const satisfies Record<ServiceState, readonly [string, Text]>;

/** The state of a service as a coloured dot and a word. */
export function serviceStatus(state: ServiceState): Html {
  const [kind, word] = words[state];
  return html`<span class="status ${kind}">${word}</span>`;
}

/** Whether who opens a service would only be told that it is not there. */
function isBroken({ state }: Pick<ServiceLink, 'state'>): boolean {
  return state !== 'ready' && state !== 'starting';
}

/** A service in the order in which pages show them. */
export interface PlacedServiceLink extends ServiceLink {
  /** Of its group, of its state and its own. */
  readonly place: ServicePlace;
}

/**
 * Services in the order in which they are shown: group by group, each where its first service stands in the
 * configuration and those without one last; in a group, what is broken last.
 */
export function inShownOrder(services: readonly ServiceLink[]): readonly PlacedServiceLink[] {
  const firstOf = new Map<string | undefined, number>([[undefined, services.length]]);
  services.forEach(({ group }, position) => {
    if (!firstOf.has(group)) firstOf.set(group, position);
  });
  return services
    .map((service, position) => ({
      ...service,
      place: [firstOf.get(service.group) ?? 0, Number(isBroken(service)), position],
    }))
    .toSorted((one, other) => comparePlaces(one.place, other.place));
}

/** Where an edge of a page of such services is now; undefined where it can be none. */
export function placeInOrder(
  services: readonly PlacedServiceLink[],
  key: string,
): ServicePlace | undefined {
  const place = placeOf(key, (name, then) => {
    const now = services.find((each) => each.name === name)?.place;
    return then.length === now?.length ? now.with(1, then[1] ?? 0) : undefined;
  });
  return place?.length === 3 ? place : undefined;
}

/** The favourites first, then what was used last, each under a heading of its own; the rest as it was. */
export function onShelves(services: readonly ServiceLink[]): readonly ServiceLink[] {
  const favourites = services.filter(({ isFavourite }) => isFavourite);
  const recent = services
    .filter(({ isFavourite, lastUsedAt }) => !isFavourite && lastUsedAt !== undefined)
    .toSorted((one, other) => Number(other.lastUsedAt) - Number(one.lastUsedAt))
    .slice(0, maxRecent);
  const first = new Set([...favourites, ...recent]);
  if (first.size === 0) return services;
  const put = (members: readonly ServiceLink[], shelf: Phrase) =>
    members.map((each) => ({ ...each, shelf }));
  return [
    ...put(favourites, favouritesLabel),
    ...put(recent, recentLabel),
    ...services.filter((each) => !first.has(each)),
  ];
}

const maxRecent = 6;
const favouritesLabel = text`Favourites`;
const recentLabel = text`Used last`;

/** Services as cards below their groups; the order is that of `inShownOrder`. */
export function serviceCards(
  layout: FormLayoutProps,
  services: readonly ServiceLink[],
  /** Level of the headings of the groups. */
  level: 2 | 3 = 2,
): Html {
  const groups = [...Map.groupBy(services, ({ shelf, group }) => shelf ?? group)];
  const heading = (name: Phrase): Html =>
    level === 2
      ? html`<h2 class="group-name">${name}</h2>`
      : html`<h3 class="group-name">${name}</h3>`;
  const isGrouped = groups.some(([name]) => name !== undefined);
  return html`<form method="post" action="${layout.urls.favouriteService}">${csrfField(layout)}${hiddenFields({ return_to: layout.address })}${groups.map(
    ([group, members]) =>
      html`${isGrouped && heading(group ?? text`Further services`)}<ul class="cards">${members.map((each) => card(layout, each))}</ul>`,
  )}</form>`;
}

function card(layout: FormLayoutProps, service: ServiceLink): Html {
  const { now } = layout;
  const { title, description, url, state, since, contact } = service;
  const broken = isBroken(service);
  return html`<li class="card${broken && ' broken'}" data-key="${service.name}" data-label="${title}">${serviceIcon(service)}<div class="what">
${broken ? html`<strong>${title}</strong>` : html`<a href="${url}">${title}</a>`}${description !== undefined && html`<p>${description}</p>`}
<p class="state">${serviceStatus(state)}${broken && html`${since && html`<span>${timeElement(since, now)}</span>`}<a href="${url}" aria-label="${text`Try to open ${title}`}">${text`Try to open`}</a>`}</p>${broken && contact !== undefined && html`<p class="small">${text`Ask ${contact}.`}</p>`}
</div>${star(service)}</li>`;
}

function star({ name, title, isFavourite = false }: ServiceLink): Html {
  return html`<button class="user-button icon-button" name="${isFavourite ? 'unmark' : 'mark'}" value="${name}" aria-pressed="${String(isFavourite)}" aria-label="${text`Favourite: ${title}`}">${icon('star')}</button>`;
}

function serviceIcon({ icon, name, title }: ServiceLink): Html {
  const shown: HtmlValue =
    icon?.kind === 'image'
      ? html`<img src="${icon.url}" alt="" width="40" height="40" loading="lazy">`
      : (icon?.text ?? initialsOf(name, title === name ? undefined : title));
  return html`<span class="service-icon" aria-hidden="true">${shown}</span>`;
}
