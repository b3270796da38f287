// The shell is the first process of its container, which the kernel keeps from signals it does not catch.
const serve = `
at=$(echo $HUB_SERVICE_URL | tail -c +8)
trap exit TERM
httpd -f -p $at & echo listening on $at
wait`;
const ignore =
  'trap "echo SIGTERM ignored" TERM; echo ignoring SIGTERM; while :; do sleep 0.2; done';

/** What the spawner contract asks servers in containers of busybox to do. */
export const contractCommands = {
  serves: ['sh', '-c', serve],
  exits: ['sh', '-c', 'exit 3'],
  stubborn: ['sh', '-c', ignore],
  missing: ['no-such-program'],
};
