import { type OldSetting, oldSettings } from './jupyterhub-settings.ts';

/** Names of other programs, or of older days, for what the hub calls differently. */
const foreignNames: Readonly<Record<string, string>> = {
  db_url: 'database_url',
  template_vars: 'announcement',
  default_server_name: 'allow_named_servers',
  notebook_dir: 'home_dir',
  oauth_no_confirm_list: 'oauth_no_confirm',
  apiToken: 'api_token',
  token: 'api_token',
};

/** What JupyterHub's settings say of a name, in whatever section it stood. */
function oldSettingOf(name: string): OldSetting | undefined {
  return Object.entries(oldSettings).find(([path]) => path.endsWith(`.${name}`))?.[1];
}

/** Where a setting of JupyterHub is that another section has, or what to do instead; empty where nothing is known. */
export function adviceOnOldSetting(name: string, known: readonly string[]): string {
  const setting = oldSettingOf(name);
  if (setting === undefined || closestName(name, known) !== undefined) return '';
  return 'here' in setting ? `: it is ${setting.here} here` : `: ${setting.instead}`;
}

/** How TLS is set up, for who looks for it by another name. */
export const tlsAdvice =
  'TLS is an https:// address in Hub.bind_url with Hub.certificates, or a proxy in front of the hub (docs/how-to/run-behind-tls.md)';

/** Finds the known name that was most likely meant by `name`. */
export function closestName(name: string, known: readonly string[]): string | undefined {
  const plain = plainForm(name);
  const same = known.find((candidate) => plainForm(candidate) === plain);
  if (same !== undefined) return same;

  const old = oldSettingOf(name);
  const renamed = old && 'here' in old ? old.here.split('.').at(-1) : undefined;
  const foreign = Object.hasOwn(foreignNames, name) ? foreignNames[name] : renamed;
  if (foreign !== undefined && known.includes(foreign)) return foreign;
  // What is only spelt alike is another thing.
  if (old !== undefined) return undefined;

  // One slip in four letters still reads as the same word; more is another word.
  const limit = Math.max(1, Math.floor(plain.length / 4));
  if (plain.length > 64) return undefined;
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(plain, plainForm(candidate)) }))
    .sort((left, right) => left.distance - right.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= limit ? best.candidate : undefined;
}

/** Phrases the suggestion for the end of a message; empty when there is none. */
export function didYouMean(name: string, known: readonly string[]): string {
  const suggestion = closestName(name, known);
  if (suggestion !== undefined) return `; did you mean \`${suggestion}\`?`;
  return /^(?:ssl|tls|https?)_?(?:cert|key|ca|enabled)/i.test(name) ? `: ${tlsAdvice}` : '';
}

function plainForm(name: string): string {
  return name.replaceAll(/[_\-\s.]/g, '').toLowerCase();
}

/** Counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(left: string, right: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      let cost = Math.min((previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, replaced);
      const isSwap = left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      if (row > 1 && column > 1 && isSwap) {
        cost = Math.min(cost, (beforePrevious[column - 2] ?? 0) + 1);
      }
      current.push(cost);
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous.at(-1) ?? 0;
}
