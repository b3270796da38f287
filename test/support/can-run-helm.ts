import { runsHelm } from '../../scripts/helm.ts';
import { offers, requires } from './requires.ts';

/** Whether Helm and kubectl of the npm package can be unpacked and run here. */
export function canRunHelm(): boolean {
  return offers('Linux on x86-64', runsHelm) && requires('unzip');
}
