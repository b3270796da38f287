/** What a service is called on pages: its `info.title`, or its name. */
export function serviceTitle({
  name,
  info,
}: {
  readonly name: string;
  readonly info?: Readonly<Record<string, unknown>>;
}): string {
  const title = info?.['title'];
  return typeof title === 'string' && title.trim() !== '' ? title : name;
}
