import type { SpawnerConfig, SpawnerProfile } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import { requireBoundedDepth } from '../../platform/http/body.ts';
import { localizedPhrase, type Text, text } from '../../platform/texts/text.ts';
import type {
  ResourceGuarantees,
  ResourceLimits,
  Volume,
} from '../../plugin/host/spawn-request.ts';
import type { OptionsField, OptionsForm } from '../../plugin/host/spawner.ts';

/** What a user may choose at the start of a server. */
export interface SpawnChoices {
  /** Those that are open to the user. */
  readonly profiles: readonly SpawnerProfile[];
  /** Whether there are profiles, of which none is open to the user. */
  readonly isClosed?: boolean;
  /** What the spawners ask, by their names; those that ask nothing are not in it. */
  readonly forms: ReadonlyMap<string, OptionsForm>;
  /** Name of the spawner of a profile, or of none. */
  readonly spawnerOf: (profile: SpawnerProfile | undefined) => string;
}

/** What a choice means for the server. */
export interface ChosenOptions {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly defaultUrl: string;
  /** Name of the chosen profile; undefined where there are none. */
  readonly profile: string | undefined;
  readonly limits: ResourceLimits;
  readonly guarantees: ResourceGuarantees;
  /** Their sources still with placeholders: which account they are for is not known here. */
  readonly volumes: readonly Volume[];
  /** The choice itself: stored, handed to the spawner, and used again by a start without options. */
  readonly userOptions: Readonly<Record<string, unknown>>;
}

/** Whether there is anything to choose, so that a page should ask. */
export function hasChoices({ profiles, forms }: SpawnChoices): boolean {
  return profiles.length > 0 || [...forms.values()].some(({ fields }) => fields.length > 0);
}

/** Of the choices for all servers of a user, as JSON: they are stored, and shown with the user. */
const maxChoiceBytes = 64 * 1024;

/**
 * Checks a choice and works out what it means. Throws `bad_request` naming the field. Profiles and the
 * fields of the form are checked; any other JSON is kept as it is, for the spawner. Commands and the
 * environment may hold `{username}`, `{server}` and `{directory}`, the folder of the configuration file.
 */
export function chooseOptions(
  choices: SpawnChoices,
  submitted: Readonly<Record<string, unknown>>,
  config: SpawnerConfig,
  placeholders: Readonly<Record<string, string>>,
): ChosenOptions {
  requireBoundedDepth(submitted);
  requireRoom(submitted);
  if (choices.isClosed === true) {
    throw new HubError('forbidden', text`No kind of server is open to you.`, {
      hint: text`The administrator can add you to a group that has one.`,
    });
  }
  const profile = chooseProfile(choices.profiles, submitted['profile']);
  const userOptions: Record<string, unknown> = { ...submitted };
  for (const field of choices.forms.get(choices.spawnerOf(profile))?.fields ?? []) {
    const value = checkField(field, submitted[field.name]);
    if (value === undefined) delete userOptions[field.name];
    else userOptions[field.name] = value;
  }
  if (profile !== undefined) userOptions['profile'] = profile.name;

  const command = [...(profile?.cmd ?? config.cmd ?? []), ...(profile?.args ?? config.args)];
  if (command.length === 0) {
    throw new HubError(
      'unavailable',
      text`This hub starts no servers: it has no command for them.`,
      {
        hint: text`The administrator must set Spawner.cmd.`,
      },
    );
  }
  return {
    command: command.map((word) => fillIn(word, placeholders)),
    environment: Object.fromEntries(
      Object.entries({ ...config.environment, ...profile?.environment }).map(([name, value]) => [
        name,
        fillIn(value, placeholders),
      ]),
    ),
    defaultUrl: fillIn(profile?.default_url ?? config.default_url, placeholders),
    profile: profile?.name,
    limits: withoutUndefined({
      memoryBytes: profile?.mem_limit ?? config.mem_limit,
      cpuCores: profile?.cpu_limit ?? config.cpu_limit,
      gpus: profile?.gpu_limit ?? config.gpu_limit,
      processes: profile?.process_limit ?? config.process_limit,
    }),
    guarantees: withoutUndefined({
      memoryBytes: profile?.mem_guarantee ?? config.mem_guarantee,
      cpuCores: profile?.cpu_guarantee ?? config.cpu_guarantee,
    }),
    volumes: (profile?.volumes ?? config.volumes).map(
      ({ source, sub_path, target, read_only }) => ({
        source,
        ...(sub_path !== undefined && { subPath: sub_path }),
        target: fillIn(target, placeholders),
        readOnly: read_only,
      }),
    ),
    userOptions,
  };
}

/** Throws `bad_request` for a choice that is too large beside those for the other servers of the user. */
export function requireRoom(choice: Readonly<Record<string, unknown>>, otherBytes = 0): void {
  if (Buffer.byteLength(JSON.stringify(choice)) + otherBytes <= maxChoiceBytes) return;
  throw new HubError(
    'bad_request',
    text`The options of all servers of a user may take ${maxChoiceBytes / 1024} KiB together, written as JSON.`,
    { hint: text`Choose less, or delete a server that is no longer needed.` },
  );
}

/** Fills `{name}` where there is such a placeholder; everything else stays, `{port}` for the spawner. */
function fillIn(text: string, placeholders: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\{([a-z_]+)\}/g, (whole, name: string) => placeholders[name] ?? whole);
}

/** The profile that is wanted, or the first; undefined where there are none. Throws `bad_request`. */
export function chooseProfile(
  profiles: readonly SpawnerProfile[],
  wanted: unknown,
): SpawnerProfile | undefined {
  // Without profiles the word means nothing to the hub, and may mean something to the spawner.
  if (profiles.length === 0) return undefined;
  if (wanted === undefined || wanted === '') {
    return profiles.find((profile) => profile.default) ?? profiles[0];
  }
  const profile = profiles.find(({ name }) => name === wanted);
  if (profile !== undefined) return profile;
  const names = profiles.map(({ name }) => name).join(', ');
  throw new HubError('bad_request', text`There is no such profile; there are: ${names}.`);
}

function checkField(
  field: OptionsField,
  submitted: unknown,
): string | number | boolean | undefined {
  const refuse = (problem: Text) =>
    new HubError('bad_request', text`${localizedPhrase(field.label)}: ${problem}`);
  if (field.type === 'checkbox')
    return submitted === true || submitted === 'on' || submitted === 'true';
  const value = submitted === undefined || submitted === '' ? field.default : submitted;
  if (value === undefined || value === '') {
    if (field.required === true) throw refuse(text`this must be filled in.`);
    return undefined;
  }
  if (field.type === 'number') {
    const number = Number(value);
    if (!Number.isFinite(number)) throw refuse(text`this must be a number.`);
    if (field.min !== undefined && number < field.min)
      throw refuse(text`this must be at least ${String(field.min)}.`);
    if (field.max !== undefined && number > field.max)
      throw refuse(text`this must be at most ${String(field.max)}.`);
    return number;
  }
  if (typeof value !== 'string' || value.length > 10_000) throw refuse(text`this must be a text.`);
  if (field.type === 'select' && field.choices?.some((choice) => choice.value === value) !== true) {
    throw refuse(text`this is none of the choices.`);
  }
  return value;
}

type Defined<Value> = { readonly [Key in keyof Value]?: Exclude<Value[Key], undefined> };

function withoutUndefined<Value extends object>(value: Value): Defined<Value> {
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(entries) as Defined<Value>;
}
