import { slurmPlugin } from '../src/spawning/slurm/slurm-plugin.ts';

/** The built-in spawner for clusters that run Slurm. */
export default slurmPlugin;
