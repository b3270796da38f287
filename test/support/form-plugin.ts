/** What differs between the plugins of tests; all of it is source text. */
export interface FormPluginParts {
  /** `Hub.authenticator_class`; the section is this with a capital, followed by `Authenticator`. */
  readonly name: string;
  readonly imports?: string;
  /** Fields of the user who logs in beside the name, which the source knows as `name`. */
  readonly userFields: string;
  /** More members of the authenticator, each with a comma after it. */
  readonly members?: string;
}

/** Source of an authenticator as an operator drops it into `plugins_dir`: its form admits any name and password. */
export function formPluginSource({
  name,
  imports = '',
  userFields,
  members = '',
}: FormPluginParts): string {
  const section = `${name.charAt(0).toUpperCase()}${name.slice(1)}Authenticator`;
  return `
${imports}
import { z } from ${JSON.stringify(import.meta.resolve('zod'))};
export default {
  kind: 'authenticator',
  name: ${JSON.stringify(name)},
  section: ${JSON.stringify(section)},
  optionsSchema: z.strictObject({}),
  create: () => ({
    login: { kind: 'form', label: 'Any name', fields: [
      { name: 'username', label: 'User name', type: 'text', autocomplete: 'username' },
      { name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' },
    ] },
    authenticate: async (form) => {
      const name = form.get('username');
      return { outcome: 'authenticated', user: { name, ${userFields} } };
    },
    ${members}
  }),
};
`;
}
