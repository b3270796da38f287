/** What a plugin may write to the hub's log. */
export interface PluginLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What is used of pino's `Logger`: plugins compile against this file, and have no pino. */
interface Logger {
  child(labels: object): Logger;
  isLevelEnabled(level: string): boolean;
  debug(fields: unknown, message?: string): void;
  info(fields: unknown, message?: string): void;
  warn(fields: unknown, message?: string): void;
  error(fields: unknown, message?: string): void;
}

/** Members of every line; a second one of the same name would hide the first or break the line's reader. */
const lineMembers = ['level', 'time', 'pid', 'hostname', 'name', 'msg'];

/**
 * The log of one plugin: its lines carry the labels, and a field whose name the line has
 * already gets the prefix `plugin_`.
 */
export function createPluginLog(log: Logger, labels: Readonly<Record<string, string>>): PluginLog {
  const taken = new Set([...lineMembers, ...Object.keys(labels)]);
  const child = log.child(labels);

  function renamed(fields: object): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(fields)) {
      if (!taken.has(name)) result[name] = value;
      else if (labels[name] !== value) result[`plugin_${name}`] = value;
    }
    return result;
  }

  const write =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (fields: object | string, message?: string): void => {
      if (!child.isLevelEnabled(level)) return;
      // A plugin in JavaScript may call it as it calls other logs: with nothing but a message.
      if (typeof fields === 'string') child[level](fields);
      else child[level](renamed(fields), message);
    };

  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}
