//! The macros of `vrt`. Use them through the `vrt` crate.

mod equivalence;

use proc_macro::TokenStream;
use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream as Tokens};
use quote::{format_ident, quote};
use syn::{DeriveInput, Ident, ItemFn, ReturnType, parse_macro_input};

/// Makes `main` the program of every virtual rank.
///
/// `main` may be `async`, and may take the communicator of all ranks:
///
/// ```ignore
/// #[vrt::main]
/// fn main(world: vrt::World) {
///     println!("rank {} of {}", world.rank(), world.size());
/// }
/// ```
///
/// The process that starts becomes the supervisor: it reads the options from the `VRT_*` environment variables (see
/// `vrt::Config`) and starts the PEs, and each rank runs the body of the function. What `main` returns is reported
/// as for any `main`: a failure ends the job.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    let arguments = Tokens::from(arguments);
    if !arguments.is_empty() {
        let message = "this attribute takes no arguments; configure the job with VRT_* variables";
        return syn::Error::new_spanned(arguments, message).to_compile_error().into();
    }
    expand_main(function).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Relates a struct to the datatype of its fields, in the order they are written.
///
/// The fields may be anything that has a datatype, arrays and tuples of such, and other structs
/// that derive it. Padding is not sent, so structs with the same fields in the same order match
/// whatever their layouts. `#[mpi(crate = "path")]` says where the `vrt` crate is found.
///
/// # Examples
///
/// ```ignore
/// use vrt::traits::*;
///
/// #[derive(Clone, Copy, Equivalence)]
/// struct Particle {
///     place: [f64; 3],
///     charge: i8,
/// }
///
/// vrt::run_local(1, |_| assert_eq!(Particle::equivalent_datatype().size(), 25));
/// ```
#[proc_macro_derive(Equivalence, attributes(mpi))]
pub fn derive_equivalence(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    equivalence::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand_main(mut function: ItemFn) -> syn::Result<Tokens> {
    if function.sig.ident != "main" || function.sig.inputs.len() > 1 {
        return Err(syn::Error::new_spanned(
            &function.sig,
            "this attribute belongs above `fn main()` or `fn main(world: vrt::World)`, which may be `async`",
        ));
    }
    let vrt = vrt_path();
    let visibility = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    function.sig.ident = format_ident!("rank_main");
    let launch = match function.sig.asyncness {
        None => quote!(launch),
        Some(_) => quote!(launch_async),
    };
    if let ReturnType::Default = function.sig.output {
        function.sig.output = syn::parse_quote!(-> ());
    }
    if !function.sig.inputs.is_empty() {
        function = with_world(function, &vrt);
    }
    Ok(quote! {
        #visibility fn main() -> ::std::process::ExitCode {
            #[allow(clippy::unused_unit)]
            #function
            match #vrt::Config::from_env() {
                Ok(config) => #vrt::#launch(config, rank_main),
                Err(error) => #vrt::report_usage_error(&error),
            }
        }
    })
}

/// The function without its argument, which is the world.
fn with_world(mut inner: ItemFn, vrt: &Tokens) -> ItemFn {
    let mut outer = inner.clone();
    outer.sig.inputs.clear();
    inner.sig.ident = format_ident!("main_of_rank");
    let wait = inner.sig.asyncness.map(|_| quote!(.await));
    let body = quote!({
        #inner
        // A rank's runtime is there before its first line.
        main_of_rank(#vrt::initialize().expect("ranks are initialized").world()) #wait
    });
    outer.block = syn::parse_quote!(#body);
    outer
}

/// The name under which the calling package knows the `vrt` crate, or the crate `mpi` that stands
/// for it.
fn vrt_path() -> Tokens {
    let named_mpi = || match crate_name("mpi") {
        Ok(FoundCrate::Itself) => Ok(FoundCrate::Name("mpi".to_owned())),
        found => found,
    };
    let by_package = crate_name("virtual-ranks").map(|found| match found {
        // Under the package's own name the crate is the library's.
        FoundCrate::Name(name) if name == "virtual_ranks" => FoundCrate::Name("vrt".to_owned()),
        found => found,
    });
    match by_package.or_else(|_| named_mpi()) {
        Ok(FoundCrate::Name(name)) => {
            let name = Ident::new(&name, Span::call_site());
            quote!(::#name)
        }
        Ok(FoundCrate::Itself) | Err(_) => quote!(::vrt),
    }
}
