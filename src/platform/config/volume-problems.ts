import type { ConfigProblem } from '../errors.ts';
import type { Config } from './config.ts';

interface PlacedVolume {
  readonly path: string;
  readonly source: string;
  readonly isWritable: boolean;
}

/** Finds volumes that would give a user the files of another, or a way out of the container. */
export function findVolumeProblems(config: Config): ConfigProblem[] {
  const volumes = volumesOf(config);
  return volumes.flatMap((volume) => {
    const message =
      sharedProblem(volume) ?? outerProblem(volume, volumes) ?? equalProblem(volume, volumes);
    return message === undefined ? [] : [{ path: `${volume.path}.source`, message }];
  });
}

function volumesOf({ Spawner }: Config): PlacedVolume[] {
  const lists = [
    { path: 'Spawner.volumes', volumes: Spawner.volumes },
    ...Spawner.profiles.map(({ volumes = [] }, index) => ({
      path: `Spawner.profiles[${index}].volumes`,
      volumes,
    })),
  ];
  return lists.flatMap(({ path, volumes }) =>
    volumes.map(({ source, sub_path, read_only }, index) => ({
      path: `${path}[${index}]`,
      // What is in a volume is a folder.
      source: sub_path === undefined ? source : `/${source}/${sub_path}`,
      isWritable: !read_only,
    })),
  );
}

const placeholder = /\{(username|server)\}/;
/** No name of a server holds one of these, and so the end of the user's name can be told. */
const parting = /[^A-Za-z0-9-]|--/;

/** Names of users may hold hyphens, and so may those of servers, which users choose. */
function sharedProblem({ source }: PlacedVolume): string | undefined {
  const [, ...words] = source.split(placeholder);
  if (!source.includes('{server}')) return undefined;
  if (!source.includes('{username}')) {
    return 'has {server} without {username}: servers of different users may have one name';
  }
  for (let index = 0; index + 2 < words.length; index += 2) {
    const [word, between = '', next] = words.slice(index, index + 3);
    if (word === next || parting.test(between)) continue;
    return `could be the same for two users: put "_" or "--" between {${word}} and {${next}}, in place of "${between}"`;
  }
  if (source.startsWith('/') && segmentsOf(source).includes('{server}')) {
    return (
      'has {server} between two slashes, where the default server, whose name is empty, would get the folder with ' +
      "those of the user's other servers: write for example server-{server}"
    );
  }
  return undefined;
}

/** In a folder that they can write to, users could put a link to any other in place of one that is mounted. */
function outerProblem(
  { source }: PlacedVolume,
  volumes: readonly PlacedVolume[],
): string | undefined {
  if (!source.startsWith('/')) return undefined;
  const outer = volumes.find((each) => each.isWritable && isWithin(source, each.source));
  if (outer === undefined) return undefined;
  return `lies in ${outer.source} (${outer.path}), which users can write to: a link there could lead anywhere`;
}

function isWithin(source: string, folder: string): boolean {
  const inner = segmentsOf(source);
  const outer = segmentsOf(folder);
  return (
    inner.length > outer.length && outer.every((each, index) => canBe(each, inner[index] ?? ''))
  );
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '');
}

/** Whether a segment with placeholders may become another one. */
function canBe(segment: string, other: string): boolean {
  if (segment === other) return true;
  const [start = '', ...rest] = segment.split(/\{(?:username|server)\}/);
  return rest.length > 0 && other.startsWith(start) && other.endsWith(rest.at(-1) ?? '');
}

/** One pattern with the name of a user may be another one with a longer name. */
function equalProblem(
  { source }: PlacedVolume,
  volumes: readonly PlacedVolume[],
): string | undefined {
  const other = volumes.find((each) => each.source !== source && canBeOfOther(source, each.source));
  if (other === undefined) return undefined;
  return `could be ${other.source} (${other.path}) of another user: use a folder of its own, or put "_" between its own word and {username}`;
}

/** A user and a server, by whose names a text is parted again. */
const anyone: Readonly<Record<string, string>> = { username: 'q', server: 's' };

/** Whether a pattern can become for another user what a second one is for `anyone`. */
function canBeOfOther(pattern: string, second: string): boolean {
  const text = second.replaceAll(/\{(username|server)\}/g, (_, word: string) => anyone[word] ?? '');
  const name = pattern.startsWith('/') ? '[^/]' : '[a-z0-9-]';
  // Of several ways to part it, the longest and the shortest name are tried.
  return ['', '?'].some((lazy) => {
    const seen = new Set<string>();
    const expression = pattern.split(placeholder).map((part, index) => {
      if (index % 2 === 0) return part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
      if (seen.has(part)) return String.raw`\k<${part}>`;
      seen.add(part);
      return `(?<${part}>${part === 'server' ? '[a-z0-9-]*' : `${name}+`}${lazy})`;
    });
    const { groups } = new RegExp(`^${expression.join('')}$`).exec(text) ?? {};
    return groups?.['username'] !== undefined && groups['username'] !== anyone['username'];
  });
}
