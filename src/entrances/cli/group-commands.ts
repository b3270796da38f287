import type { Command } from 'commander';
import type { AnswerOf } from '../../operations/operations.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { confirmDeletion } from './ask-password.ts';
import type { CliIo } from './cli-io.ts';
import { performing } from './performing.ts';
import { withConfig } from './with-config.ts';

type Group = AnswerOf<'viewGroups'>['found']['items'][number];

/** Adds `hub group list|create|delete|add|remove`. */
export function addGroupCommands(program: Command, io: CliIo): void {
  const group = program.command('group').description('manage groups and who belongs to them');
  const list = withConfig(group.command('list'))
    .description('list all groups')
    .option('--json', 'as JSON, for programs');
  performing(list, io, ['viewGroups'], async (perform, flags: { readonly json?: boolean }) => {
    const all: Group[] = [];
    let after: string | undefined;
    do {
      const query = after === undefined ? {} : { after };
      const { found } = await perform('viewGroups', { query });
      all.push(...found.items);
      after = found.isLast ? undefined : found.items.at(-1)?.name;
    } while (after !== undefined);
    io.stdout.write(flags.json === true ? `${JSON.stringify(all, undefined, 2)}\n` : asTable(all));
  });

  const create = withConfig(group.command('create'))
    .description('create a group, with members if wanted')
    .argument('<name>', 'name of the new group')
    .argument('[users...]', 'names of its members');
  performing(create, io, ['createGroups'], async (perform, name: string, users: string[]) => {
    await perform('createGroups', { body: { groups: [name], users } });
    io.stdout.write(`Created the group ${name}.\n`);
  });

  const remove = withConfig(group.command('delete'))
    .description('delete a group; its members stay users')
    .argument('<group>', 'name of the group')
    .option('-y, --yes', 'do not ask');
  performing(
    remove,
    io,
    ['deleteGroup'],
    async (perform, name: string, flags: { readonly yes?: boolean }) => {
      await confirmDeletion(io, `the group ${name}`, flags);
      await perform('deleteGroup', { params: { group: name } });
      io.stdout.write(`Deleted ${name}.\n`);
    },
  );

  for (const [name, operation, description] of [
    ['add', 'addGroupMembers', 'add users to a group'],
    ['remove', 'removeGroupMembers', 'remove users from a group'],
  ] as const) {
    const command = withConfig(group.command(name))
      .description(description)
      .argument('<group>', 'name of the group')
      .argument('<users...>', 'names of users');
    performing(command, io, [operation], async (perform, groupName: string, users: string[]) => {
      const params = { group: groupName };
      const found = await perform(operation, { params, body: { users } });
      const members = 'users' in found ? (found.users ?? []) : [];
      io.stdout.write(`Members of ${groupName}: ${members.join(', ') || 'none'}.\n`);
    });
  }
}

function asTable(groups: readonly Group[]): string {
  if (groups.length === 0)
    return `There are no groups yet. Create one with: ${hubCommand('group create GROUP')}\n`;
  const width = Math.max(5, ...groups.map(({ name }) => name.length));
  const rows = groups.map(
    ({ name, memberCount, origin }) =>
      `${name.padEnd(width)}  ${String(memberCount).padStart(7)}  ${origin}\n`,
  );
  return `${'GROUP'.padEnd(width)}  MEMBERS  FROM\n${rows.join('')}`;
}
