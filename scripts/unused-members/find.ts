import {
  type InterfaceDeclaration,
  isElementAccessExpression,
  isIdentifier,
  isInterfaceDeclaration,
  isMethodSignatureDeclaration,
  isObjectBindingPattern,
  isParameterDeclaration,
  isPropertyAccessExpression,
  isPropertySignatureDeclaration,
  isSpreadAssignment,
  isStringLiteral,
  isTypeLiteralNode,
  type Node,
  type ObjectBindingPattern,
  type SignatureDeclaration,
  type TypeLiteralNode,
} from 'typescript/unstable/ast';
import {
  API,
  type Checker,
  type Symbol as MemberSymbol,
  SignatureKind,
  type Type,
} from 'typescript/unstable/sync';

/** A method, or a property that holds a function, as an interface or a type literal declares it. */
interface Member {
  readonly name: Node & { readonly text: string };
  readonly owner: InterfaceDeclaration | TypeLiteralNode;
}

/**
 * Finds functions among the members of interfaces that no file of a program calls, passes on or
 * takes out: what a search for unused exports cannot see. An interface whose values are handed over
 * where a type with a used member of the same name is expected counts as used in that member.
 * Returns `Interface.member`, sorted.
 */
export function findUnusedMembers(options: {
  /** Absolute path of the `tsconfig.json`. */
  readonly project: string;
  /** Which files' uses count. */
  readonly isProgram: (file: string) => boolean;
  /** Which files' interfaces are searched; they are part of the program. */
  readonly isSearched: (file: string) => boolean;
}): string[] {
  const api = new API();
  try {
    const [project] = api.updateSnapshot({ openProjects: [options.project] }).getProjects();
    if (project === undefined) throw new Error(`${options.project} is no project`);
    const { checker } = project;
    const members: Member[] = [];
    const reads: Node[] = [];
    const patterns: ObjectBindingPattern[] = [];
    const spreads: Node[] = [];

    for (const file of project.program.getSourceFileNames().filter(options.isProgram)) {
      const isSearched = options.isSearched(file);
      const visit = (node: Node): void => {
        if (isPropertyAccessExpression(node)) reads.push(node.name);
        else if (isElementAccessExpression(node) && isStringLiteral(node.argumentExpression))
          reads.push(node.argumentExpression);
        else if (isObjectBindingPattern(node)) patterns.push(node);
        else if (isSpreadAssignment(node)) spreads.push(node.expression);
        else if (isSearched && (isInterfaceDeclaration(node) || isTypeLiteralNode(node)))
          members.push(...membersOf(node));
        node.forEachChild(visit);
      };
      project.program.getSourceFile(file)?.forEachChild(visit);
    }

    const used = new Set<string>();
    const note = (symbol: MemberSymbol | undefined) => {
      for (const declaration of declarationsOf(symbol)) used.add(declaration);
    };
    for (const symbol of checker.getSymbolAtLocation(reads)) note(symbol);
    for (const [index, type] of checker.getTypeAtLocation(patterns).entries()) {
      const pattern = patterns[index];
      // Of a pattern with a default, `({ a } = {}) =>`, the type is that of the default.
      const taken = [type, pattern && expectedParameter(checker, pattern)];
      for (const { propertyName, name } of pattern?.elements ?? []) {
        const key = propertyName ?? name;
        if (!key || !isIdentifier(key)) continue;
        for (const each of taken) if (each) note(checker.getPropertyOfType(each, key.text));
      }
    }
    for (const type of checker.getTypeAtLocation(spreads)) {
      if (type) for (const property of checker.getPropertiesOfType(type)) note(property);
    }

    const typeOf = ({ owner }: Member) =>
      checker.getTypeAtLocation(isInterfaceDeclaration(owner) ? owner.name : owner);
    const symbols = checker.getSymbolAtLocation(members.map(({ name }) => name));
    const isUsed = (_: Member, index: number) =>
      declarationsOf(symbols[index]).some((declaration) => used.has(declaration));
    const usedMembers = Map.groupBy(members.filter(isUsed), ({ name }) => name.text);

    return members
      .filter((member, index) => {
        const symbol = symbols[index];
        if (!symbol || !isInterfaceDeclaration(member.owner) || isUsed(member, index)) return false;
        const declared = checker.getTypeOfSymbol(symbol);
        const type = declared && checker.getNonNullableType(declared);
        if (!type || checker.getSignaturesOfType(type, SignatureKind.Call).length === 0)
          return false;
        const [own, others] = [typeOf(member), usedMembers.get(member.name.text) ?? []];
        return !others.some((other) => {
          const expected = typeOf(other);
          return own && expected && checker.isTypeAssignableTo(own, expected);
        });
      })
      .map(({ owner, name }) => `${isInterfaceDeclaration(owner) && owner.name.text}.${name.text}`)
      .toSorted();
  } finally {
    api.close();
  }
}

/** The type of a parameter by the signature that is expected of its function. */
function expectedParameter(checker: Checker, pattern: ObjectBindingPattern): Type | undefined {
  const parameter = pattern.parent;
  if (!isParameterDeclaration(parameter)) return undefined;
  const declaration = parameter.parent as SignatureDeclaration;
  const signature = checker.getSignatureFromDeclaration(declaration);
  const type =
    signature && checker.getParameterType(signature, declaration.parameters.indexOf(parameter));
  return type && checker.getNonNullableType(type);
}

function membersOf(owner: InterfaceDeclaration | TypeLiteralNode): Member[] {
  return owner.members.flatMap((member) => {
    if (!isPropertySignatureDeclaration(member) && !isMethodSignatureDeclaration(member)) return [];
    return isIdentifier(member.name) ? [{ name: member.name, owner }] : [];
  });
}

function declarationsOf(symbol: MemberSymbol | undefined): string[] {
  return (symbol?.declarations ?? []).map(({ path, index }) => `${path}#${index}`);
}
