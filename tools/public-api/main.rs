//! Prints the public interface of a crate, one line per item, from the JSON that rustdoc writes:
//! `public-api [--examples] [--most-types N] FILE`.
//!
//! An item has the path by which callers reach it, not the one at which it is defined, so that code
//! can move inside the crate. Every match on the parts of a line is without a wildcard, so an
//! addition to rustdoc's format is a compile error, not a gap.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::process::ExitCode;

use rustdoc_types::{
    Abi, AssocItemConstraintKind, Attribute, Constant, Crate, Function, FunctionHeader,
    FunctionSignature, GenericArg, GenericArgs, GenericBound, GenericParamDef, GenericParamDefKind,
    Generics, Id, Impl, Item, ItemEnum, ItemKind, Path, PreciseCapturingArg, ReprKind, Struct,
    StructKind, Term, TraitBoundModifier, Type, VariantKind, WherePredicate,
};

/// The formats of rustdoc that the types of rustdoc-types 0.57 read. The formats up to 61
/// only add information about stability in the standard library.
const FORMATS: RangeInclusive<u64> = 57..=61;

const USAGE: &str = "usage: public-api [--examples] [--most-types N] FILE";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("public-api: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let wants_examples = arguments.first().is_some_and(|first| first == "--examples");
    arguments.drain(..usize::from(wants_examples));
    let (most, file) = match &arguments[..] {
        [file] => (usize::MAX, file),
        [option, most, file] if option == "--most-types" => {
            (most.parse().map_err(|error| format!("{most}: {error}; {USAGE}"))?, file)
        }
        _ => return Err(USAGE.to_owned()),
    };
    let json = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let json: serde_json::Value =
        serde_json::from_str(&json).map_err(|error| format!("{file}: {error}"))?;
    let format = json["format_version"].as_u64().unwrap_or_default();
    if !FORMATS.contains(&format) {
        return Err(format!(
            "{file}: unsupported format_version {format} of rustdoc's JSON (supported: {FORMATS:?}).\n\
             If it is older, update the nightly toolchain: rustup update nightly. If it is newer, \
             adapt tools/public-api: in Cargo.toml \
             the version of rustdoc-types becomes the one with FORMAT_VERSION {format} (https://docs.rs/rustdoc-types), FORMATS in \
             main.rs follows, and what the compiler then reports is repaired. Afterwards \
             tools/public-api/test.sh must pass, and \
             tools/public-api.sh should find no difference."
        ));
    }
    let krate: Crate = serde_json::from_value(json).map_err(|error| format!("{file}: {error}"))?;

    let interface = Interface::new(&krate);
    for (_, line) in interface.lines() {
        println!("{line}");
    }
    let (name, types) = (interface.root_name(), interface.types());
    eprintln!("{name}: {types} public types");
    if types > most {
        return Err(format!("{name} has {types} public types (at most {most})"));
    }
    let missing = interface.items_without_example();
    if wants_examples && !missing.is_empty() {
        return Err(format!("without an example that is compiled: {}", missing.join(", ")));
    }
    Ok(())
}

/// The item that a line describes, which is the sort key; and the line.
type Lines = BTreeSet<(String, String)>;

struct Interface<'c> {
    krate: &'c Crate,
    /// Every path by which modules lead to an item, of this crate or of another whose items it
    /// exports.
    ways: Vec<(String, Id)>,
    /// The shortest path to each item of this crate.
    paths: HashMap<Id, String>,
    /// Exports that do not name an item: all of an enum or of another crate's module, and primitive
    /// types.
    unnamed: Lines,
}

impl<'c> Interface<'c> {
    fn new(krate: &'c Crate) -> Self {
        let mut new =
            Self { krate, ways: Vec::new(), paths: HashMap::new(), unnamed: Lines::new() };
        new.walk(&new.root_name(), krate.root, &mut Vec::new());
        new.ways.sort_by_cached_key(|(path, _)| (path.matches("::").count(), path.clone()));
        for (path, id) in &new.ways {
            if new.item(*id).is_some() {
                new.paths.entry(*id).or_insert_with(|| path.clone());
            }
        }
        new
    }

    fn root_name(&self) -> String {
        name_of(&self.krate.index[&self.krate.root]).to_owned()
    }

    /// An item of this crate: rustdoc's index also has traits of others.
    fn item(&self, id: Id) -> Option<&'c Item> {
        let own = self.krate.index[&self.krate.root].crate_id;
        self.krate.index.get(&id).filter(|item| item.crate_id == own)
    }

    /// Adds `path`, which leads to the item, and all ways that go on from there. `above` are the
    /// modules on the way, which may be exported again below themselves.
    fn walk(&mut self, path: &str, id: Id, above: &mut Vec<Id>) {
        self.ways.push((path.to_owned(), id));
        self.walk_into(path, id, above);
    }

    fn walk_into(&mut self, path: &str, id: Id, above: &mut Vec<Id>) {
        let items = match self.item(id).map(|item| &item.inner) {
            Some(ItemEnum::Module(module)) if !above.contains(&id) => &module.items,
            _ => return,
        };
        above.push(id);
        for id in items {
            let Some(item) = self.item(*id) else { continue };
            let way = |name: &str| format!("{path}::{name}");
            match &item.inner {
                ItemEnum::Use(from) => match from.id {
                    Some(id) if !from.is_glob => self.walk(&way(&from.name), id, above),
                    Some(id) if self.is_module(id) => self.walk_into(path, id, above),
                    _ => {
                        let name = if from.is_glob { way("*") } else { way(&from.name) };
                        let line = format!("pub use {name} = {}", from.source);
                        self.unnamed.insert((name, line));
                    }
                },
                // They are listed wherever they are.
                ItemEnum::Impl(_) => {}
                _ => self.walk(&way(name_of(item)), item.id, above),
            }
        }
        above.pop();
    }

    fn is_module(&self, id: Id) -> bool {
        self.item(id).is_some_and(|item| matches!(item.inner, ItemEnum::Module(_)))
    }

    /// Whether the item is a module without items, as guides are, or one of such modules.
    fn is_documentation(&self, id: Id) -> bool {
        match self.item(id).map(|item| &item.inner) {
            Some(ItemEnum::Module(module)) => {
                module.items.iter().all(|id| self.is_documentation(*id))
            }
            _ => false,
        }
    }

    /// The number of public types, aliases of types and traits, each counted once.
    fn types(&self) -> usize {
        use ItemKind::{Enum, Struct, Trait, TypeAlias, Union};
        let is_type = |id: &Id| {
            let kind = self.krate.paths.get(id).map(|summary| summary.kind);
            kind.is_some_and(|kind| [Struct, Enum, Union, Trait, TypeAlias].contains(&kind))
        };
        let mut types: Vec<Id> = self.ways.iter().map(|(_, id)| *id).filter(is_type).collect();
        types.sort();
        types.dedup();
        types.len()
    }

    /// Public types, traits and modules whose documentation has no code that rustdoc compiles.
    fn items_without_example(&self) -> Vec<&str> {
        use ItemEnum::{Enum, Module, Struct, Trait, TypeAlias, Union};
        let lacks_example = |id: Id| {
            let Some(item) = self.item(id).filter(|_| !self.is_documentation(id)) else {
                return false;
            };
            let is_type = matches!(
                item.inner,
                Enum(_) | Module(_) | Struct(_) | Trait(_) | TypeAlias(_) | Union(_)
            );
            let lines = item.docs.iter().flat_map(|docs| docs.lines());
            let fences = lines.filter_map(|line| line.trim_start().strip_prefix("```"));
            let compiled = |words: &str| matches!(words.trim(), "" | "rust" | "no_run");
            is_type && !fences.step_by(2).any(compiled)
        };
        let mut paths: Vec<&str> = self
            .paths
            .iter()
            .filter(|(id, _)| lacks_example(**id))
            .map(|(_, path)| path.as_str())
            .collect();
        paths.sort_unstable();
        paths
    }

    fn lines(&self) -> Lines {
        let mut lines = self.unnamed.clone();
        for (path, id) in self.ways.iter().filter(|(_, id)| !self.is_documentation(*id)) {
            match self.item(*id) {
                Some(item) if self.paths[id] == *path => self.list(path, item, &[], &mut lines),
                _ => {
                    let line = format!("pub use {path} = {}", self.name(*id));
                    lines.insert((path.clone(), line));
                }
            }
        }
        for item in self.krate.index.values().filter_map(|item| self.item(item.id)) {
            match &item.inner {
                // Auto traits, and the blanket impls of other crates.
                ItemEnum::Impl(block) if block.is_synthetic || block.blanket_impl.is_some() => {}
                ItemEnum::Impl(block) => self.list_impl(item, block, &mut lines),
                _ => {}
            }
        }
        lines
    }

    fn list_impl(&self, item: &Item, block: &Impl, lines: &mut Lines) {
        let self_type = self.ty(&block.for_);
        let Some(implemented) = &block.trait_ else {
            // Each function of the block repeats the block's bounds.
            let demanded = block.generics.params.iter().filter_map(|param| match &param.kind {
                GenericParamDefKind::Lifetime { outlives } if outlives.is_empty() => None,
                GenericParamDefKind::Type { bounds, .. } if bounds.is_empty() => None,
                _ => Some(self.generic_param(param)),
            });
            let demanded: Vec<String> =
                demanded.chain(self.predicates(&block.generics.where_predicates)).collect();
            for item in block.items.iter().filter_map(|id| self.item(*id)) {
                let name = name_of(item);
                self.list(&format!("{self_type}::{name}"), item, &demanded, lines);
            }
            return;
        };
        let mut own = Vec::new();
        for item in block.items.iter().filter_map(|id| self.item(*id)) {
            if !matches!(item.inner, ItemEnum::Function(_)) {
                own.push(self.signature(name_of(item), item, &[]));
            }
        }
        let line = format!(
            "{}{}impl{} {}{} for {self_type}{}{}",
            self.attributes(item),
            if block.is_unsafe { "unsafe " } else { "" },
            self.generic_params(&block.generics.params),
            if block.is_negative { "!" } else { "" },
            self.path(implemented),
            self.where_clause(&block.generics, &[]),
            if own.is_empty() { String::new() } else { format!(" {{ {} }}", own.join("; ")) },
        );
        // After the type and its fields, before its methods.
        lines.insert((self_type + " impl", line));
    }

    fn list(&self, path: &str, item: &Item, demanded: &[String], lines: &mut Lines) {
        let mut add = |key: String, path: &str, item: &Item| {
            let signature = self.signature(path, item, demanded);
            lines.insert((key, format!("{}pub {signature}", self.attributes(item))));
        };
        add(path.to_owned(), path, item);
        let members = match &item.inner {
            ItemEnum::Struct(Struct { kind: StructKind::Plain { fields, .. }, .. }) => fields,
            ItemEnum::Union(of) => &of.fields,
            ItemEnum::Enum(of) => &of.variants,
            ItemEnum::Trait(of) => &of.items,
            _ => return,
        };
        // In their order, which says how variants compare.
        for (index, member) in members.iter().filter_map(|id| self.item(*id)).enumerate() {
            let name = name_of(member);
            add(format!("{path} {index:03}"), &format!("{path}::{name}"), member);
        }
    }

    /// An item with everything that a caller can rely on. `demanded` is added to the where clause
    /// of a function.
    fn signature(&self, path: &str, item: &Item, demanded: &[String]) -> String {
        match &item.inner {
            ItemEnum::Module(_) => format!("mod {path}"),
            ItemEnum::ExternCrate { name, .. } => format!("extern crate {path} = {name}"),
            ItemEnum::Struct(of) => {
                let fields = match &of.kind {
                    StructKind::Unit => String::new(),
                    StructKind::Tuple(fields) => self.tuple_fields(fields),
                    StructKind::Plain { has_stripped_fields, .. } => {
                        self.fields(&[], *has_stripped_fields)
                    }
                };
                self.generic("struct", path, &of.generics, &fields)
            }
            ItemEnum::Union(of) => {
                let fields = self.fields(&[], of.has_stripped_fields);
                self.generic("union", path, &of.generics, &fields)
            }
            ItemEnum::Enum(of) => {
                let variants = self.fields(&[], of.has_stripped_variants);
                self.generic("enum", path, &of.generics, &variants)
            }
            ItemEnum::StructField(field) => format!("{path}: {}", self.ty(field)),
            ItemEnum::Variant(variant) => {
                let fields = match &variant.kind {
                    VariantKind::Plain => String::new(),
                    VariantKind::Tuple(fields) => self.tuple_fields(fields),
                    VariantKind::Struct { fields, has_stripped_fields } => {
                        self.fields(fields, *has_stripped_fields)
                    }
                };
                let discriminant = variant.discriminant.as_ref().map(|number| &number.value);
                format!("{path}{fields}{}", value(discriminant))
            }
            ItemEnum::Function(of) => self.function(path, of, demanded),
            ItemEnum::Trait(of) => {
                let safe = if of.is_unsafe { "unsafe " } else { "" };
                let auto = if of.is_auto { "auto " } else { "" };
                let dynamic = if of.is_dyn_compatible { "" } else { "not-dyn " };
                let word = format!("{safe}{auto}{dynamic}trait");
                self.generic(&word, path, &of.generics, &self.colon_bounds(&of.bounds))
            }
            ItemEnum::TraitAlias(of) => {
                let bounds = self.bounds(&of.params);
                self.generic("trait", path, &of.generics, &value(Some(&bounds)))
            }
            ItemEnum::TypeAlias(of) => {
                let ty = self.ty(&of.type_);
                self.generic("type", path, &of.generics, &value(Some(&ty)))
            }
            ItemEnum::AssocType { generics, bounds, type_ } => {
                let ty = type_.as_ref().map(|ty| self.ty(ty));
                let rest = self.colon_bounds(bounds) + &value(ty.as_ref());
                self.generic("type", path, generics, &rest)
            }
            ItemEnum::Constant { type_, const_ } => {
                let of = value_of(item, constant(const_));
                format!("const {path}: {} = {of}", self.ty(type_))
            }
            ItemEnum::AssocConst { type_, value: of } => {
                let of = of.as_ref().map(|of| value_of(item, of));
                format!("const {path}: {}{}", self.ty(type_), value(of.as_ref()))
            }
            ItemEnum::Static(of) => {
                let safe = if of.is_unsafe { "unsafe " } else { "" };
                let mutable = if of.is_mutable { "mut " } else { "" };
                format!("{safe}static {mutable}{path}: {}", self.ty(&of.type_))
            }
            ItemEnum::ExternType => format!("extern type {path}"),
            ItemEnum::Macro(source) => {
                format!("{path} {}", source.split_whitespace().collect::<Vec<_>>().join(" "))
            }
            ItemEnum::ProcMacro(of) => format!("{:?} macro {path} {:?}", of.kind, of.helpers),
            // A module's path leads to its exports, an impl is not an item of a module, and
            // primitive types belong to the standard library.
            ItemEnum::Use(_) | ItemEnum::Impl(_) | ItemEnum::Primitive(_) => {
                unreachable!("{path} is {:?}", item.inner)
            }
        }
    }

    fn generic(&self, word: &str, path: &str, generics: &Generics, rest: &str) -> String {
        let params = self.generic_params(&generics.params);
        format!("{word} {path}{params}{rest}{}", self.where_clause(generics, &[]))
    }

    /// Those that bind callers, but for `#[automatically_derived]` and the like.
    fn attributes(&self, item: &Item) -> String {
        let mut all = if item.deprecation.is_some() { "#[deprecated] " } else { "" }.to_owned();
        for attribute in &item.attrs {
            match attribute {
                Attribute::NonExhaustive => all += "#[non_exhaustive] ",
                Attribute::MustUse { .. } => all += "#[must_use] ",
                Attribute::MacroExport => all += "#[macro_export] ",
                Attribute::NoMangle => all += "#[no_mangle] ",
                Attribute::ExportName(name) => all += &format!("#[export_name = {name:?}] "),
                Attribute::TargetFeature { enable } => {
                    all += &format!("#[target_feature({})] ", enable.join(","));
                }
                Attribute::Repr(repr) => {
                    let kind = match repr.kind {
                        ReprKind::Rust => None,
                        ReprKind::C => Some("C".to_owned()),
                        ReprKind::Transparent => Some("transparent".to_owned()),
                        ReprKind::Simd => Some("simd".to_owned()),
                    };
                    let align = repr.align.map(|bytes| format!("align({bytes})"));
                    let packed = repr.packed.map(|bytes| format!("packed({bytes})"));
                    let parts = [kind, repr.int.clone(), align, packed];
                    let parts: Vec<String> = parts.into_iter().flatten().collect();
                    all += &format!("#[repr({})] ", parts.join(", "));
                }
                Attribute::AutomaticallyDerived
                | Attribute::LinkSection(_)
                | Attribute::Other(_) => {}
            }
        }
        all
    }

    /// Named fields, as far as they are not listed themselves, and whether there are private ones.
    fn fields(&self, fields: &[Id], has_stripped: bool) -> String {
        let mut all: Vec<String> = fields
            .iter()
            .filter_map(|id| self.item(*id))
            .map(|item| self.attributes(item) + &self.signature(name_of(item), item, &[]))
            .collect();
        all.extend(has_stripped.then(|| "..".to_owned()));
        if all.is_empty() { String::new() } else { format!(" {{ {} }}", all.join(", ")) }
    }

    fn tuple_fields(&self, fields: &[Option<Id>]) -> String {
        let field = |id: &Option<Id>| match id.and_then(|id| self.item(id)).map(|item| &item.inner)
        {
            Some(ItemEnum::StructField(field)) => self.ty(field),
            _ => "_".to_owned(),
        };
        format!("({})", fields.iter().map(field).collect::<Vec<_>>().join(", "))
    }

    fn function(&self, path: &str, of: &Function, demanded: &[String]) -> String {
        format!(
            "{}fn {path}{}{}{}{}",
            header(&of.header),
            self.generic_params(&of.generics.params),
            self.parameters(&of.sig),
            self.where_clause(&of.generics, demanded),
            // A method that a trait demands of its types.
            if of.has_body { "" } else { ";" },
        )
    }

    fn parameters(&self, of: &FunctionSignature) -> String {
        let parameter = |(name, ty): &(String, Type)| match (name.as_str(), self.ty(ty)) {
            ("self", ty) if !ty.contains('<') => ty.replace("Self", "self"),
            ("", ty) => ty,
            (name, ty) => format!("{name}: {ty}"),
        };
        let mut all: Vec<String> = of.inputs.iter().map(parameter).collect();
        all.extend(of.is_c_variadic.then(|| "...".to_owned()));
        format!("({}){}", all.join(", "), self.output(of.output.as_ref()))
    }

    fn output(&self, of: Option<&Type>) -> String {
        of.map(|ty| format!(" -> {}", self.ty(ty))).unwrap_or_default()
    }

    fn generic_params(&self, params: &[GenericParamDef]) -> String {
        // `impl Trait` as the type of a parameter stands there.
        let is_written = |param: &&GenericParamDef| {
            !matches!(param.kind, GenericParamDefKind::Type { is_synthetic: true, .. })
        };
        let all: Vec<String> =
            params.iter().filter(is_written).map(|param| self.generic_param(param)).collect();
        if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
    }

    fn generic_param(&self, param: &GenericParamDef) -> String {
        let name = &param.name;
        match &param.kind {
            GenericParamDefKind::Lifetime { outlives } if outlives.is_empty() => name.clone(),
            GenericParamDefKind::Lifetime { outlives } => {
                format!("{name}: {}", outlives.join(" + "))
            }
            GenericParamDefKind::Type { bounds, default, is_synthetic: _ } => {
                let default = default.as_ref().map(|ty| self.ty(ty));
                format!("{name}{}{}", self.colon_bounds(bounds), value(default.as_ref()))
            }
            GenericParamDefKind::Const { type_, default } => {
                format!("const {name}: {}{}", self.ty(type_), value(default.as_ref()))
            }
        }
    }

    fn where_clause(&self, generics: &Generics, demanded: &[String]) -> String {
        let own = self.predicates(&generics.where_predicates);
        let all: Vec<String> = demanded.iter().cloned().chain(own).collect();
        if all.is_empty() { String::new() } else { format!(" where {}", all.join(", ")) }
    }

    fn predicates(&self, all: &[WherePredicate]) -> impl Iterator<Item = String> {
        all.iter().map(|predicate| match predicate {
            WherePredicate::BoundPredicate { type_, bounds, generic_params } => {
                let lifetimes = self.for_lifetimes(generic_params);
                format!("{lifetimes}{}: {}", self.ty(type_), self.bounds(bounds))
            }
            WherePredicate::LifetimePredicate { lifetime, outlives } => {
                format!("{lifetime}: {}", outlives.join(" + "))
            }
            WherePredicate::EqPredicate { lhs, rhs } => {
                format!("{} == {}", self.ty(lhs), self.term(rhs))
            }
        })
    }

    fn for_lifetimes(&self, params: &[GenericParamDef]) -> String {
        let params = self.generic_params(params);
        if params.is_empty() { params } else { format!("for{params} ") }
    }

    fn colon_bounds(&self, bounds: &[GenericBound]) -> String {
        if bounds.is_empty() { String::new() } else { format!(": {}", self.bounds(bounds)) }
    }

    fn bounds(&self, bounds: &[GenericBound]) -> String {
        let bound = |bound: &GenericBound| match bound {
            GenericBound::TraitBound { trait_, generic_params, modifier } => {
                let modifier = match modifier {
                    TraitBoundModifier::None => "",
                    TraitBoundModifier::Maybe => "?",
                    TraitBoundModifier::MaybeConst => "[const] ",
                };
                let lifetimes = self.for_lifetimes(generic_params);
                format!("{lifetimes}{modifier}{}", self.path(trait_))
            }
            GenericBound::Outlives(lifetime) => lifetime.clone(),
            GenericBound::Use(captured) => {
                let name = |captured: &PreciseCapturingArg| match captured {
                    PreciseCapturingArg::Lifetime(name) | PreciseCapturingArg::Param(name) => {
                        name.clone()
                    }
                };
                format!("use<{}>", captured.iter().map(name).collect::<Vec<_>>().join(", "))
            }
        };
        bounds.iter().map(bound).collect::<Vec<_>>().join(" + ")
    }

    fn types_of(&self, types: &[Type]) -> String {
        types.iter().map(|ty| self.ty(ty)).collect::<Vec<_>>().join(", ")
    }

    fn ty(&self, ty: &Type) -> String {
        match ty {
            Type::ResolvedPath(path) => self.path(path),
            Type::DynTrait(of) => {
                let part = |part: &rustdoc_types::PolyTrait| {
                    self.for_lifetimes(&part.generic_params) + &self.path(&part.trait_)
                };
                let parts = of.traits.iter().map(part).chain(of.lifetime.clone());
                format!("(dyn {})", parts.collect::<Vec<_>>().join(" + "))
            }
            Type::Generic(name) | Type::Primitive(name) => name.clone(),
            Type::FunctionPointer(of) => {
                let lifetimes = self.for_lifetimes(&of.generic_params);
                format!("{lifetimes}{}fn{}", header(&of.header), self.parameters(&of.sig))
            }
            Type::Tuple(types) => format!("({})", self.types_of(types)),
            Type::Slice(of) => format!("[{}]", self.ty(of)),
            Type::Array { type_, len } => format!("[{}; {len}]", self.ty(type_)),
            Type::Pat { type_, __pat_unstable_do_not_use: pattern } => {
                format!("{} is {pattern}", self.ty(type_))
            }
            Type::ImplTrait(bounds) => format!("(impl {})", self.bounds(bounds)),
            Type::Infer => "_".to_owned(),
            Type::RawPointer { is_mutable: true, type_ } => format!("*mut {}", self.ty(type_)),
            Type::RawPointer { is_mutable: false, type_ } => format!("*const {}", self.ty(type_)),
            Type::BorrowedRef { lifetime, is_mutable, type_ } => {
                let lifetime = lifetime.as_ref().map(|name| format!("{name} "));
                let mutable = if *is_mutable { "mut " } else { "" };
                format!("&{}{mutable}{}", lifetime.unwrap_or_default(), self.ty(type_))
            }
            Type::QualifiedPath { name, args, self_type, trait_ } => {
                let (self_type, args) = (self.ty(self_type), self.generic_args(args.as_deref()));
                match trait_ {
                    Some(of) => format!("<{self_type} as {}>::{name}{args}", self.path(of)),
                    None => format!("{self_type}::{name}{args}"),
                }
            }
        }
    }

    fn path(&self, path: &Path) -> String {
        self.name(path.id) + &self.generic_args(path.args.as_deref())
    }

    /// An item of this crate by its public path. One of another crate by its crate and name, one of
    /// the standard library with the module between them: where exactly those are defined changes
    /// with their versions.
    fn name(&self, id: Id) -> String {
        if let Some(path) = self.paths.get(&id) {
            return path.clone();
        }
        let Some(summary) = self.krate.paths.get(&id) else { return "private".to_owned() };
        let path: Vec<&str> = summary.path.iter().map(String::as_str).collect();
        match path[..] {
            ["core" | "alloc" | "std", name] => format!("std::{name}"),
            ["core" | "alloc" | "std", module, .., name] => format!("std::{module}::{name}"),
            [krate, .., name] if summary.crate_id != 0 => format!("{krate}::{name}"),
            _ => path.join("::"),
        }
    }

    fn generic_args(&self, args: Option<&GenericArgs>) -> String {
        match args {
            None => String::new(),
            Some(GenericArgs::AngleBracketed { args, constraints }) => {
                let args = args.iter().map(|arg| match arg {
                    GenericArg::Lifetime(name) => name.clone(),
                    GenericArg::Type(ty) => self.ty(ty),
                    GenericArg::Const(of) => constant(of).clone(),
                    GenericArg::Infer => "_".to_owned(),
                });
                let constraints = constraints.iter().map(|constraint| {
                    let name = &constraint.name;
                    let args = self.generic_args(constraint.args.as_deref());
                    match &constraint.binding {
                        AssocItemConstraintKind::Equality(term) => {
                            format!("{name}{args} = {}", self.term(term))
                        }
                        AssocItemConstraintKind::Constraint(bounds) => {
                            format!("{name}{args}: {}", self.bounds(bounds))
                        }
                    }
                });
                let all: Vec<String> = args.chain(constraints).collect();
                if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
            }
            Some(GenericArgs::Parenthesized { inputs, output }) => {
                format!("({}){}", self.types_of(inputs), self.output(output.as_ref()))
            }
            Some(GenericArgs::ReturnTypeNotation) => "(..)".to_owned(),
        }
    }

    fn term(&self, term: &Term) -> String {
        match term {
            Term::Type(ty) => self.ty(ty),
            Term::Constant(of) => constant(of).clone(),
        }
    }
}

fn name_of(item: &Item) -> &str {
    item.name.as_deref().unwrap_or_default()
}

/// Of the expressions of constants, rustdoc prints names and literals, and `_` for all others:
/// these are taken from the source.
fn value_of(item: &Item, printed: &str) -> String {
    let source = || {
        let span = item.span.as_ref().filter(|_| printed == "_")?;
        let file = std::fs::read_to_string(&span.filename).ok()?;
        let lines = file.lines().take(span.end.0).skip(span.begin.0 - 1);
        let words = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
        let (_, expression) = words.split_once(" = ")?;
        Some(expression.trim_end_matches(';').to_owned())
    };
    source().unwrap_or_else(|| printed.to_owned())
}

/// The value if rustdoc computed it, or else the expression.
fn constant(of: &Constant) -> &String {
    of.value.as_ref().unwrap_or(&of.expr)
}

fn value(of: Option<&String>) -> String {
    of.map(|value| format!(" = {value}")).unwrap_or_default()
}

fn header(of: &FunctionHeader) -> String {
    let mut all = String::new();
    for (is, word) in [(of.is_const, "const "), (of.is_async, "async "), (of.is_unsafe, "unsafe ")]
    {
        all += if is { word } else { "" };
    }
    match &of.abi {
        Abi::Rust => all,
        abi => format!("{all}extern {abi:?} "),
    }
}
