import type { SpawnerConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import { localizedPhrase, type Phrase } from '../../platform/texts/text.ts';
import type { ResourceLimits } from '../../plugin/host/spawn-request.ts';
import type { Server } from './server.ts';
import { chooseOptions, type SpawnChoices } from './spawn-options.ts';

/** What was chosen for a server, in words. */
export interface ServerSetup {
  readonly profile: Phrase | undefined;
  /** What the form of its spawner asks, with what was answered. */
  readonly options: readonly { readonly label: Phrase; readonly value: string }[];
  /** By the configuration as it is now. */
  readonly limits: ResourceLimits;
}

const maxValueLength = 200;

/** Describes the last choice for a server; one that the configuration does not know any more by its names alone. */
export function describeSetup(
  { userOptions }: Pick<Server, 'userOptions'>,
  choices: SpawnChoices,
  config: SpawnerConfig,
): ServerSetup {
  const { profile: chosenName, ...answers } = userOptions;
  const profile = choices.profiles.find(({ name }) => name === chosenName);
  const fields = choices.forms.get(choices.spawnerOf(profile))?.fields ?? [];
  const options = Object.entries(answers).map(([name, value]) => ({
    label: localizedPhrase(fields.find((field) => field.name === name)?.label ?? name),
    value: (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, maxValueLength),
  }));
  return {
    profile: profile ? localizedPhrase(profile.display_name ?? profile.name) : textOf(chosenName),
    options,
    limits: limitsOf(userOptions, choices, config),
  };
}

function limitsOf(
  userOptions: Server['userOptions'],
  choices: SpawnChoices,
  config: SpawnerConfig,
): ResourceLimits {
  try {
    return chooseOptions(choices, userOptions, config, {}).limits;
  } catch (error) {
    if (error instanceof HubError) return {};
    throw error;
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
