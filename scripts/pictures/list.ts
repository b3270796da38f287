/** A picture of a page, in `docs/pictures/<name>-light.webp` and `-dark.webp`. */
export interface Picture {
  readonly name: string;
  /** What is to be seen, for those who do not see it. */
  readonly alt: string;
  /** Of the part that is shown, in CSS pixels; as high as the page unless given. */
  readonly height?: number;
  readonly isNarrow?: true;
}

/** In the order in which they are taken: each page leads to the next. */
export const pictures = [
  { name: 'set-up', alt: 'The first administrator chooses a name and a password' },
  {
    name: 'first-home',
    alt: 'The home page after the first login, with a button that starts a server',
  },
  { name: 'options', alt: 'Server options: choosing a profile before the start' },
  { name: 'progress', alt: 'A server starting, with its expected duration and its output' },
  { name: 'own-server', alt: "A user's server: a workspace with files" },
  { name: 'login', alt: 'The login page' },
  { name: 'home', alt: "The home page: the user's servers, and services as cards" },
  { name: 'home-phone', alt: 'The home page on a phone', isNarrow: true, height: 844 },
  { name: 'consent', alt: 'An app asks to know who the user is, in plain words' },
  {
    name: 'tokens',
    alt: 'Access tokens of a user: what each may do, when it was used, and a button that ends it',
  },
  { name: 'share', alt: 'A server is shared with users, with a group and by a link' },
  { name: 'failed-home', alt: 'The home page after a failed start, with the reason' },
  {
    name: 'failed-server',
    alt: 'The page of the failed server: the reason and its last output',
  },
  { name: 'fixed-options', alt: 'Choosing another profile' },
  { name: 'fixed-server', alt: 'The page of the server, now running' },
  { name: 'server', alt: 'The page of a server: state, CPU, memory and requests as plots, output' },
  { name: 'users', alt: 'Administration: the list of users with filters' },
  { name: 'user', alt: 'Administration: a user with groups, roles, tokens and servers' },
  { name: 'services', alt: 'Administration: services and how they are' },
  { name: 'service', alt: 'Administration: a service with its plots and its output' },
  { name: 'activity', alt: 'Administration: who did what, and when' },
] as const satisfies readonly Picture[];

export type PictureName = (typeof pictures)[number]['name'];

export const themes = ['light', 'dark'] as const;
export type Theme = (typeof themes)[number];

export function fileOf(name: string, theme: Theme): string {
  return `${name}-${theme}.webp`;
}
