/**
 * Loaded before a program (`node --import …/lend-to-folder.ts?folder=/path`): lets the files of that
 * folder import what plugins import.
 */
import { provideHostPackages } from './host-packages.ts';

const folder = new URL(import.meta.url).searchParams.get('folder');
if (folder === null) throw new TypeError('which folder? append ?folder=/path/of/plugins');
provideHostPackages({ path: folder, isFolder: true });
