import { expect, test } from 'vitest';
import { reasonsForRoles } from './role-reasons.ts';

test('a user holds roles as everyone does, by being given them, and through groups', () => {
  const assignment = (roleName: string, subjectKind: 'user' | 'group', subjectName: string) => ({
    roleName,
    subjectKind,
    subjectName,
    origin: 'config',
  });
  const groups = [
    { name: 'teachers', origin: 'github' },
    { name: 'staff', origin: 'api' },
  ];
  const reasons = reasonsForRoles({ name: 'ada', isAdmin: true, groups }, [
    assignment('course-lead', 'group', 'teachers'),
    assignment('course-lead', 'user', 'ada'),
    assignment('course-lead', 'group', 'others'),
    assignment('reader', 'group', 'staff'),
    assignment('reader', 'user', 'bob'),
    // A user of the name of a group is another matter.
    assignment('writer', 'user', 'staff'),
  ]);
  expect(Object.fromEntries(reasons)).toEqual({
    user: [{ kind: 'every user' }],
    admin: [{ kind: 'administrator' }],
    'course-lead': [
      { kind: 'group', groupName: 'teachers', memberOrigin: 'github' },
      { kind: 'given', origin: 'config' },
    ],
    reader: [{ kind: 'group', groupName: 'staff', memberOrigin: 'api' }],
  });
});
